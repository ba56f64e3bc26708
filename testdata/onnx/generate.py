#!/usr/bin/env python3
"""Write the models of this directory with onnx, and golden.json with what they hold.

golden.json: file -> {"tensors": {name: {dtype, shape, sha256 of the elements as raw_data has them}},
"warn": words, "meta": keys} or {"error": words that the message must have}. The files under hand/ and
their entries (hand.json) are made by hand."""
import hashlib, json, os
import ml_dtypes, numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {T.FLOAT: "F32", T.UINT8: "U8", T.INT8: "I8", T.UINT16: "U16", T.INT16: "I16", T.INT32: "I32", T.INT64: "I64", T.BOOL: "BOOL",
        T.FLOAT16: "F16", T.DOUBLE: "F64", T.UINT32: "U32", T.UINT64: "U64", T.COMPLEX64: "C64", T.COMPLEX128: "C128",
        T.BFLOAT16: "BF16", T.FLOAT8E4M3FN: "F8_E4M3", T.FLOAT8E4M3FNUZ: "F8_E4M3FNUZ", T.FLOAT8E5M2: "F8_E5M2",
        T.FLOAT8E5M2FNUZ: "F8_E5M2FNUZ", T.UINT4: "U4", T.INT4: "I4", T.FLOAT4E2M1: "F4", T.FLOAT8E8M0: "F8_E8M0",
        T.UINT2: "U2", T.INT2: "I2", T.FLOAT6E2M3: "F6_E2M3", T.FLOAT6E3M2: "F6_E3M2"}
WIDTH = {"U4": 4, "I4": 4, "F4": 4, "U2": 2, "I2": 2, "F6_E2M3": 6, "F6_E3M2": 6}
golden = {}


def packed(a, width):
    """Elements of width bits, the first one lowest."""
    bits = 0
    for i, x in enumerate(a.view(np.uint8).ravel()):
        bits |= (int(x) & (1 << width) - 1) << i * width
    return bits.to_bytes((a.size * width + 7) // 8, "little")


def entry(t):
    a, dtype = numpy_helper.to_array(t), OURS[t.data_type]
    data = packed(a, WIDTH[dtype]) if dtype in WIDTH else np.ascontiguousarray(a).tobytes()
    return {"dtype": dtype, "shape": list(t.dims), "sha256": hashlib.sha256(data).hexdigest()}


def save(file, initializers, nodes=(), warn=None, shown=None, **graph):
    g = h.make_graph(list(nodes), "the graph", [], [], list(initializers), **graph)
    m = h.make_model(g, producer_name="generate.py", opset_imports=[h.make_opsetid("", 21), h.make_opsetid("ai.onnx.ml", 5)], ir_version=10)
    h.set_model_props(m, {"key": "value", "schlüssel": "wert"})
    with open(os.path.join(HERE, file), "wb") as f:
        f.write(m.SerializeToString(deterministic=True))
    golden[file] = {"tensors": {t.name: entry(t) for t in (initializers if shown is None else shown)}, "warn": warn or [],
                    "meta": ["ir_version", "producer_name", "graph_name", "opset_import", "metadata_props"]}


def elements(dtype, n):
    a = np.arange(n) * 37 % 23 - 7
    if OURS[dtype].startswith(("U", "F8_E8")):
        a = abs(a)
    if dtype in (T.COMPLEX64, T.COMPLEX128):
        a = a + 1j * a[::-1]
    if OURS[dtype] in WIDTH or dtype == T.BOOL:
        a = a % 2
    return a.astype(h.tensor_dtype_to_np_dtype(dtype))


def named(t, name):
    t = T.FromString(t.SerializeToString())
    t.name = name
    return t


def constant(name, **value):
    """A Constant node that gives a number, a list or a string, and what it gives as an initializer."""
    (values,) = value.values()
    numbers = np.array(values, np.float32 if "float" in next(iter(value)) else None)
    return h.make_node("Constant", [], [name], **value), numpy_helper.from_array(numbers, name) if numbers.dtype.kind in "fi" else None


def main():
    typed, raw = [], []
    for dtype, name in OURS.items():
        a = elements(dtype, 15).reshape(3, 5)
        raw.append(numpy_helper.from_array(a, "raw/" + name))
        if not name.startswith("F6"):
            typed.append(h.make_tensor("typed/" + name, dtype, a.shape, a))
    wide = np.array([0, 1, -1, 127, 128, -129, 2**31 - 1, -2**31], np.int32)
    typed += [h.make_tensor("wide32", T.INT32, wide.shape, wide), h.make_tensor("wide64", T.INT64, (2, 2), [2**63 - 1, -2**63, 0, 300]),
              h.make_tensor("wideu", T.UINT64, (2,), [2**64 - 1, 1]), h.make_tensor("many", T.INT64, (18000,), np.arange(18000) * 12345 - 7),
              h.make_tensor("scalar", T.FLOAT, (), [2.5]), h.make_tensor("none", T.FLOAT, (0, 4), []), h.make_tensor("noneint", T.INT32, (0,), [])]
    save("raw.onnx", raw)
    save("typed.onnx", typed)
    f6 = T(name="f6", data_type=T.FLOAT6E2M3, dims=[2], int32_data=[1, 2])
    text = h.make_tensor("text", T.STRING, (2,), [b"a", b"b"])
    empty = T(name="nodata", data_type=T.FLOAT, dims=[2])
    part = T(name="segment", data_type=T.FLOAT, dims=[1], raw_data=b"1234", segment=T.Segment(begin=0, end=1))
    odd = T(name="unknown", data_type=99, dims=[1], raw_data=b"1")
    undefined = T(name="undefined", dims=[1], raw_data=b"1")
    ok = numpy_helper.from_array(np.arange(6, dtype=np.float16).reshape(1, 2, 3), "ok")
    sparse = h.make_sparse_tensor(h.make_tensor("sparse", T.FLOAT, (1,), [1.0]), h.make_tensor("i", T.INT64, (1,), [2]), [9])
    save("kinds.onnx", [f6, text, empty, part, odd, undefined, ok], shown=[ok], sparse_initializer=[sparse],
         warn=["f6", "text", "STRING", "nodata", "segment", "unknown", "99", "undefined", "UNDEFINED", "sparse"])
    branch = [numpy_helper.from_array(np.float32([i]), n) for i, n in enumerate(["inner", "ok", "twice"])]
    other = [numpy_helper.from_array(np.float32([9, 9]), n) for n in ["twice", "/other"]]
    c = h.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.zeros(5, np.float32)))
    node = h.make_node("If", ["x"], ["y"], then_branch=h.make_graph([c], "then", [], [], branch), else_branch=h.make_graph([], "else", [], [], other))
    first = next(t for a in node.attribute for t in a.g.initializer if t.name == "twice")
    zeros = named(c.attribute[0].t, "c")
    save("nested.onnx", [ok], [node], warn=['"ok"', '"twice"'], shown=[ok, branch[0], first, other[1], zeros])
    value = h.make_tensor("const_tensor", T.INT64, (2,), [7, -1])
    given = {n: h.make_node("Constant", [], [n], value=value) for n in ("typed", "ok")}
    theirs = h.make_node("Constant", [], ["theirs"], domain="theirs", value=value)
    filled = h.make_node("ConstantOfShape", ["typed"], ["filled"], value=h.make_tensor("", T.FLOAT, (1,), [1.0]))
    words = h.make_node("Constant", [], ["words"], value=text)
    save("constants.onnx", [ok], [c, c, *given.values(), theirs, filled, words], shown=[ok, zeros, named(value, "typed")],
         warn=['"c" of a Constant', '"ok" of a Constant', '"words"'])
    numbers = [constant("float", value_float=-0.1), constant("int", value_int=-(2**63)), constant("zero", value_int=0), constant("floats", value_floats=[1.5, -2, 1e30]),
               constant("ints", value_ints=[1, -1, 300, 2**63 - 1]), constant("one", value_ints=[7]), constant("many", value_ints=range(-9000, 9000))]
    none = h.make_node("Constant", [], ["none"])
    none.attribute.append(h.make_attribute("value_ints", [], attr_type=onnx.AttributeProto.INTS))
    numbers.append((none, T(name="none", data_type=T.INT64, dims=[0])))
    text = constant("text", value_string="a")[0], constant("texts", value_strings=["a", "b"])[0]
    save("numbers.onnx", [], [*(n for n, _ in numbers), *text], shown=[t for _, t in numbers], warn=['"text" of a Constant', '"texts" of a Constant', "STRING"])
    save("attributes.onnx", [], [theirs, filled], warn=["2 tensors", "no initializers"])
    with open(os.path.join(HERE, "hand.json")) as f:
        golden.update(json.load(f))
    with open(os.path.join(HERE, "golden.json"), "w") as f:
        json.dump(golden, f, indent=0, sort_keys=True)
        f.write("\n")


main()
