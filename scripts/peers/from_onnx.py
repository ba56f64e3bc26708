"""Models that onnx wrote or reads."""
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from mounted import mounted
from tensors import Tensor, compare

DTYPES = {
    TensorProto.FLOAT: "F32", TensorProto.DOUBLE: "F64", TensorProto.FLOAT16: "F16", TensorProto.BFLOAT16: "BF16", TensorProto.INT8: "I8",
    TensorProto.UINT8: "U8", TensorProto.INT16: "I16", TensorProto.UINT16: "U16", TensorProto.INT32: "I32", TensorProto.UINT32: "U32",
    TensorProto.INT64: "I64", TensorProto.UINT64: "U64", TensorProto.BOOL: "BOOL", TensorProto.COMPLEX64: "C64",
    TensorProto.COMPLEX128: "C128", TensorProto.FLOAT8E4M3FN: "F8_E4M3", TensorProto.FLOAT8E5M2: "F8_E5M2",
    TensorProto.FLOAT8E4M3FNUZ: "F8_E4M3FNUZ", TensorProto.FLOAT8E5M2FNUZ: "F8_E5M2FNUZ", TensorProto.FLOAT8E8M0: "F8_E8M0",
}  # fmt: skip
# The attributes that give the value of a Constant node, with the type of each.
GIVES = {"value": AttributeProto.TENSOR, "value_float": AttributeProto.FLOAT, "value_floats": AttributeProto.FLOATS, "value_int": AttributeProto.INT,
         "value_ints": AttributeProto.INTS, "value_string": AttributeProto.STRING, "value_strings": AttributeProto.STRINGS}  # fmt: skip


def initializers(graph):
    """Those of the graph and what its Constant nodes give, then those of the graphs inside its nodes. Of two with one name, the first."""
    found = {}
    for t in graph.initializer:
        found.setdefault(t.name, t)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and any(node.output) and attribute.type in (0, GIVES.get(attribute.name)):
                found.setdefault(node.output[0], constant(attribute))
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                for name, t in initializers(inner).items():
                    found.setdefault(name, t)
    return found


def constant(attribute):
    """What an attribute of a Constant node gives, as a tensor. Text has no elements that NumPy knows."""
    match attribute.name.removeprefix("value"):
        case "":
            return attribute.t
        case "_float":
            return numpy_helper.from_array(np.array(attribute.f, np.float32))
        case "_floats":
            return numpy_helper.from_array(np.array(attribute.floats, np.float32))
        case "_int":
            return numpy_helper.from_array(np.array(attribute.i, np.int64))
        case "_ints":
            return numpy_helper.from_array(np.array(attribute.ints, np.int64))
    return TensorProto(data_type=TensorProto.STRING)


def one(path):
    model = onnx.load(path)
    want = {}
    for name, t in initializers(model.graph).items():
        a = numpy_helper.to_array(t)
        want[name] = Tensor(DTYPES[t.data_type], a.shape, a.tobytes())
    with mounted(path) as mount:
        return compare(mount, want, path.parent)


def model():
    rng = np.random.default_rng(5)
    tensors = []
    for kind, name in DTYPES.items():
        a = abs(rng.standard_normal((2, 3, 64)) * 4).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        tensors.append(numpy_helper.from_array(a, f"/model/{name}.weight"))
    return onnx.helper.make_model(onnx.helper.make_graph([], "graph", [], [], tensors))


def inline(models, scratch):
    onnx.save(model(), scratch / "model.onnx")
    return one(scratch / "model.onnx")


def external(models, scratch):
    onnx.save(model(), scratch / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
    return one(scratch / "model.onnx")


def silero(models, scratch):
    names = ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx", "silero_vad_op18_ifless.onnx", "silero_vad_16k_sequence.onnx"]
    return sum(one(models.file("silero_vad", name)) for name in names)


PEERS = [inline, external, silero]
