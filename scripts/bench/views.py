"""What is not the bytes of one tensor as they lie: other formats, decoded views, assembled files."""
import json

import inputs
import mounts
from bench import SECONDS_A_PEER, GiB, MiB
from rounds import play, repeat

BLOCK_TYPES = ("Q4_K", "Q6_K", "Q8_0", "BF16")
F32 = "float32, decoded"
ASSEMBLED = "2 GiB in 4 shards as one file"
NPZ = "an array in a stored .npz"
GEMMA = "Gemma 3 270M, GGUF"


def formats(bench):
    d = bench.directory("formats")
    if not bench.quick:
        gemma(bench)
    decoded(bench, d)
    assembled(bench, d)
    out_of_npz(bench, d)
    bench.remove(d)


def gemma(bench):
    if not bench.gemma:
        return bench.note("the Gemma file is not there; its row was left out")
    bench.say(GEMMA)
    ours = mounts.weightfs(bench, bench.gemma, "token_embd.weight.raw", "--no-index")
    for round in repeat(bench.others, budget=SECONDS_A_PEER):
        play(bench, GEMMA, [ours], round, [])
        bench.samples.add(GEMMA, "gguf.GGUFReader", "mount", round, bench.python("gguf_reader", bench.gemma)["seconds"], "s")


def decoded(bench, d):
    """The reader reads the view, cold; the library converts bytes that it has in memory."""
    source = inputs.gguf(d / "types.gguf", BLOCK_TYPES, bench.bytes(64 * MiB) // 4 // 1024 * 1024)
    bench.say(F32)
    for round in repeat(bench.others):
        for kind in BLOCK_TYPES:
            name = inputs.gguf_name(kind)
            ours = mounts.weightfs(bench, source, inputs.Tensor(name, kind, 0).path + ".npy", "--no-index", view="f32")
            with ours.open(bench) as place:
                stream(bench, F32, "weightfs", kind, round, place.file)
            bench.samples.add(F32, "the library", kind, round, bench.python("dequantize", source, name)["rate"], "B/s")
    source.unlink()


def assembled(bench, d):
    """The same bytes in the same order: of one file, and of the files of raw/."""
    index = inputs.sharded(d / "set", list(inputs.layers(bench.bytes(2 * GiB), 288)), 4)
    bench.say(ASSEMBLED)
    with mounts.weightfs(bench, index, "model.safetensors", "--no-index", view="assembled").open(bench) as place:
        raw = [place.tree.parent / "raw" / f"{p}.raw" for p in in_order(place)]
        for round in repeat(bench.others):
            stream(bench, ASSEMBLED, "assembled/model.safetensors", "cold", round, place.file)
            stream(bench, ASSEMBLED, "the files of raw/", "cold", round, *raw)
    bench.remove(d / "set")


def in_order(place):
    """Paths of the tensors in the order of the assembled file."""
    with open(place.file, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    header.pop("__metadata__", None)
    paths = {t["name"]: t["path"] for t in json.loads((place.tree.parent / "tensors.json").read_text())["tensors"]}
    return [paths[name] for name in sorted(header, key=lambda name: header[name]["data_offsets"])]


def out_of_npz(bench, d):
    source = inputs.npz(d / "arrays.npz", 8, bench.bytes(32 * MiB))
    ours = mounts.weightfs(bench, source, "array_5.npy", "--no-index", view="npy")
    bench.say(NPZ)
    for round in repeat(bench.others):
        for system in (ours, mounts.ratarmount(source, "array_5.npy")):
            with system.open(bench) as place:
                stream(bench, NPZ, system.name, "cold", round, place.file)
    source.unlink()


def stream(bench, table, system, measure, round, *files):
    p = bench.read("read", *files, drop=True)[0]
    bench.samples.add(table, system, measure, round, p["bytes"] / p["seconds"], "B/s")
