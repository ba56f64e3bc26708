"""ONNX: models of initializers in every field that has elements, inside the file and beside it."""
import math
import pathlib
import sys

import onnx
from google.protobuf.internal.decoder import _DecodeVarint as DecodeVarint
from google.protobuf.internal.encoder import _VarintBytes as VarintBytes
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

import damage
from judge import Answer, Tensor

sys.path.append(str(pathlib.Path(__file__).parents[1] / "peers"))
import from_onnx  # noqa: E402

DTYPES = {
    **from_onnx.DTYPES, TensorProto.INT4: "I4", TensorProto.UINT4: "U4", TensorProto.FLOAT4E2M1: "F4", TensorProto.UINT2: "U2", TensorProto.INT2: "I2",
    TensorProto.FLOAT6E2M3: "F6_E2M3", TensorProto.FLOAT6E3M2: "F6_E3M2",
}  # fmt: skip
BITS = {"I4": 4, "U4": 4, "F4": 4, "U2": 2, "I2": 2, "F6_E2M3": 6, "F6_E3M2": 6}

REFUSED = [
    (r"stand one by one in int32_data", "four values of 6 bits take three bytes elsewhere, here four"),
    (r"(raw_data|int32_data) holds \d+ (bytes|values), but shape \[.*\] of [UIF][246]", "the library's resize() fills up or cuts off what is packed"),
    (r"a length of \S+ bytes, but shape \[.*\] of [UIF][246]", "the same"),
    (r"not a decimal number below 2\^63", "Python's int() takes signs, spaces and underscores"),
    (r"the path .* leaves the directory", "no name with .. in it is followed, wherever it leads (ox-004)"),
    (r"dimension -\d+ is negative", "NumPy's reshape() takes any negative one for what is left"),
    (r"unknown format: the file begins with", "there is no magic number: the first fields must be a model's, its texts UTF-8"),
    (r"is no sequence of varints", "one of more than 64 bits, of which protobuf drops the upper ones"),
    (r"its element type is STRING", "no tensor"),
    (r"has wire type \d, not \d", "protobuf passes over a field of another wire type; only damage makes one"),
    (r"two initializers have this name", "readers disagree which one counts (ox-011)"),
]
ACCEPTED = [
    (r"ValueError: array is too big", "a tensor without elements, whose other dimensions NumPy multiplies too"),
    (r"elsewhere than in the weights: ", "fields without weights are passed over and not parsed"),
    (r"_open_external_data\(\): incompatible function arguments.*str, str, bytes", "the library cannot read what is beside for a name that is not UTF-8"),
    (r"^without a length: ", "the library reads to the end of the file; onnxruntime takes as many bytes as the shape has"),
]


def read(path):
    model = parsed(path.read_bytes())
    if not model.HasField("graph"):
        raise ValueError("no graph")
    answer = Answer()
    for name, t in from_onnx.initializers(model.graph).items():
        name = name if isinstance(name, str) else shown(name)
        if name in answer.tensors or name in answer.without:
            continue
        endless = t.data_location == TensorProto.EXTERNAL and "length" not in {e.key for e in t.external_data}
        try:
            if t.data_location == TensorProto.EXTERNAL:
                onnx.external_data_helper.load_external_data_for_tensor(t, str(path.parent))
            a = numpy_helper.to_array(t)
            dtype = DTYPES.get(t.data_type, str(t.data_type))
            bits = BITS.get(dtype, 8)
            answer.tensors[name] = Tensor(dtype, a.shape, None if a.dtype == object else packed(a, bits), -a.size * bits % 8)
        except Exception as e:
            answer.without[name] = f"{'without a length: ' * endless}{type(e).__name__}: {e}"
    return answer


def parsed(data):
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as e:
        onnx.ModelProto.FromString(bare(data, BARE))
        raise ValueError(f"elsewhere than in the weights: {e}") from e


BARE = {7: {5: None, 1: {5: {5: None}}}}  # model.graph.initializer, and .node.attribute, which has the tensor of a Constant,
BARE[7][1][5].update({6: BARE[7], 11: BARE[7]})  # or graphs


def bare(data, fields):
    """A message without its other fields, which weightfs passes over."""
    kept, at = b"", 0
    while at < len(data):
        begin = at
        key, at = DecodeVarint(data, at)
        size, at = {0: lambda: (0, DecodeVarint(data, at)[1]), 1: lambda: (8, at), 2: lambda: DecodeVarint(data, at), 5: lambda: (4, at)}[key & 7]()
        value, at = data[at : at + size], at + size
        if at > len(data):
            raise ValueError("a field ends behind its message")
        if key & 7 == 2 and key >> 3 in fields:
            inner = value if fields[key >> 3] is None else bare(value, fields[key >> 3])
            kept += VarintBytes(key) + VarintBytes(len(inner)) + inner
    return kept


def shown(raw):
    """A name that is not UTF-8, which protobuf gives as bytes, as tensors.json has it."""
    return "".join("\ufffd" if "\udc80" <= c <= "\udcff" else c for c in raw.decode(errors="surrogateescape"))


def packed(a, bits):
    """The elements as raw_data has them: what is smaller than a byte packed from the lowest bit on."""
    raw = a.tobytes()
    if bits == 8:
        return raw
    number = sum((b & ((1 << bits) - 1)) << i * bits for i, b in enumerate(raw))
    return number.to_bytes((len(raw) * bits + 7) // 8, "little")


def make(rng):
    beside = bytearray()
    tensors = [initializer(rng, name, beside) for name in damage.names(rng, rng.choice([0, 1, 1, 2, 3, 4]))]
    inner = tensors[len(tensors) // 2 :] if rng.random() < 0.2 else []
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=helper.make_graph([], "then", [], [], inner))] if inner else []
    if tensors[len(inner) :] and rng.random() < 0.3:
        t = tensors.pop(0)
        nodes.append(helper.make_node("Constant", [], [t.name], value=t))
    if rng.random() < 0.3:
        value = rng.choice([{"value_int": rng.randrange(-(1 << 63), 1 << 63)}, {"value_float": rng.uniform(-9, 9)}, {"value_string": "text"},
                            {"value_ints": [rng.randrange(-300, 300) for _ in range(rng.randrange(1, 5))]}, {"value_floats": [-0.5] * rng.randrange(1, 5)}])  # fmt: skip
        nodes.append(helper.make_node("Constant", [], [damage.name(rng)], **value))
    graph = helper.make_graph(nodes, "graph", [], [], tensors[: len(tensors) - len(inner)])
    if rng.random() < 0.05:
        graph.sparse_initializer.append(helper.make_sparse_tensor(helper.make_tensor("sparse", 1, [1], [1.0]), helper.make_tensor("", 7, [1], [0]), [3]))
    model = helper.make_model(graph, producer_name=damage.name(rng), ir_version=rng.choice([3, 8, 10, 12]))
    for _ in range(rng.choice([0, 0, 0, 2])):
        helper.set_model_props(model, {damage.name(rng): damage.name(rng)})
    data = damage.damaged(rng, model.SerializeToString(), chance=0.4)
    return {"model.onnx": data, "model.data": damage.damaged(rng, bytes(beside), chance=0.1)}


def initializer(rng, name, beside):
    kind, shape = rng.choice(list(DTYPES)), damage.shape(rng)
    count = math.prod(shape)
    bits = BITS.get(DTYPES[kind]) or helper.tensor_dtype_to_np_dtype(kind).itemsize * 8
    raw = rng.randbytes((count * bits + 7) // 8)
    if kind == TensorProto.BOOL:
        raw = bytes(b & 1 for b in raw)
    t = TensorProto(name=name, data_type=kind, dims=shape)
    match rng.randrange(3):
        case 0:
            t.raw_data = raw
        case 1:
            external(rng, t, raw, beside)
        case 2:
            typed(rng, t, kind, count, bits)
    if rng.random() < 0.1:
        odd(rng, t, raw)
    return t


def typed(rng, t, kind, count, bits):
    field = helper.tensor_dtype_to_field(kind)
    values = -(-count * bits // 8) if bits < 8 else count
    if field in ("float_data", "double_data"):
        width = 1 + (kind in (TensorProto.COMPLEX64, TensorProto.COMPLEX128))
        getattr(t, field).extend(rng.choice([0.0, -1.5, 1e10, float("nan"), float("inf")]) for _ in range(count * width))
    else:
        limit = 1 << (1 if kind == TensorProto.BOOL else bits if bits > 4 else 8)
        low = 0 if field.startswith("u") or not DTYPES[kind].startswith("I") or bits < 8 else -limit // 2
        getattr(t, field).extend(min(rng.randrange(limit) + low, (1 << 63) - 1) for _ in range(values))


def external(rng, t, raw, beside):
    beside.extend(bytes(rng.choice([0, 0, 1, 16])))
    t.data_location = TensorProto.EXTERNAL
    fields = {"location": "model.data", "offset": str(len(beside)), "length": str(len(raw))}
    beside.extend(raw)
    if rng.random() < 0.2:
        key = rng.choice(list(fields))
        odd_values = {"location": ["", "../model.data", "./model.data", "none", "/etc/hostname", "model.onnx", "a/../model.data", "model.data/", "//model.data", "MODEL.DATA", "."],
                      "offset": ["-1", "", " 0", "0x0", "+0", "00", "1e1", "0.0", "a", "1_0", str(damage.number(rng))], "length": ["-1", "", "0", " 8", "+8", "08", str(damage.number(rng))]}  # fmt: skip
        fields[key] = rng.choice(odd_values[key])
        if rng.random() < 0.3:
            del fields[key]
    if rng.random() < 0.1:
        fields[rng.choice(["checksum", "basepath", "more"])] = rng.choice(["", "a", "/tmp"])
    for key, value in fields.items():
        t.external_data.add(key=key, value=value)


def odd(rng, t, raw):
    match rng.randrange(9):
        case 0:
            t.dims.append(damage.number(rng) % (1 << 63) * rng.choice([1, 1, -1]))
        case 1:
            t.dims[:] = [damage.number(rng) % (1 << 63)]
        case 2:
            t.raw_data = raw
        case 3:
            t.int32_data.append(1)
        case 4:
            t.data_type = rng.choice([0, 8, 29, 100, -1, 1 << 30])
        case 5:
            t.segment.begin = 0
        case 6:
            t.ClearField("name")
        case 7:
            t.data_location = rng.choice([0, 1])
        case 8:
            t.raw_data = raw + b"\0" if rng.random() < 0.5 else raw[:-1]
