"""Files that PyTorch wrote or reads. Needs PyTorch, which the other checks do without."""
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import load_file

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import gen_torch_testdata as made_by  # noqa: E402
from mounted import listing, mounted  # noqa: E402
from tensors import Tensor, check, compare, equal, only  # noqa: E402

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata" / "torch"
for _class in (made_by.Net, made_by.Scale, made_by.Config, made_by.Sub):
    setattr(sys.modules["__main__"], _class.__name__, _class)  # as the pickles call them


class Listing(made_by.Listing):
    """Keeps the objects beside what is said of them."""

    def __init__(self, obj):
        super().__init__()
        self.objects = {}
        self.add(obj)

    def add(self, obj, path=()):
        self.objects[".".join(map(str, path))] = obj
        super().add(obj, path)

    def wanted(self):
        return {name: Tensor(e["dtype"], e["shape"], self.data(name)) for name, e in self.tensors.items()}

    def data(self, name):
        obj = self.objects[name]
        return made_by.elements(obj) if isinstance(obj, torch.Tensor) else bytes(getattr(obj, "_untyped_storage", obj).tolist())


def load(path):
    return torch.load(path, map_location="cpu", weights_only=False)


def one(path):
    with mounted(path) as mount:
        return compare(mount, Listing(load(path)).wanted(), path.parent) + compare_torch(mount, load(path))


def compare_torch(mount, obj):
    """PyTorch loads the assembled file, and the float32 that it makes itself is in f32/."""
    if not isinstance(obj, dict):
        return 0
    loaded = load_file(only(mount / "assembled", "*.safetensors"))
    paths = {t["name"]: mount / "f32" / (t["path"] + ".npy") for t in listing(mount)["tensors"]}
    mine = {k: v for k, v in obj.items() if isinstance(k, str) and k in loaded and isinstance(v, torch.Tensor) and v.layout == torch.strided and not v.is_quantized}
    for name, t in mine.items():
        if not t.is_complex():
            check(loaded[name].dtype == t.dtype and loaded[name].shape == t.shape, f"{name}: {loaded[name].dtype} {loaded[name].shape}")
        if paths[name].exists():
            equal(np.load(paths[name], mmap_mode="r"), t.detach().float().resolve_neg().contiguous().numpy().reshape(-1).view(np.uint8), f"f32 of {name} by torch")
    return len(mine)


def testdata(models, scratch):
    """Files of this version and of an old one."""
    made = 0
    for path in sorted(TESTDATA.glob("[0-9]*/*.pt")):
        try:
            load(path)
        except Exception:  # what one version wrote another cannot always read; expected.json has it for the tests
            continue
        made += one(path)
    return made


def sharded(models, scratch):
    """pytorch_model.bin in two files with an index."""
    state = {f"model.layers.{i}.weight": torch.randn(3, 4, dtype=torch.bfloat16).t() for i in range(12)}
    where = {}
    for shard in (0, 1):
        part = {n: t for i, (n, t) in enumerate(state.items()) if i % 2 == shard}
        file = f"pytorch_model-{shard + 1:05}-of-00002.bin"
        torch.save(part, scratch / file)
        where.update(dict.fromkeys(part, file))
    (scratch / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    with mounted(scratch) as mount:
        return compare(mount, Listing(state).wanted(), scratch) + compare_torch(mount, state)


def pocketnet(models, scratch):
    return sum(one(models.file("pocketnet", f"v3_fold{i}.pt")) for i in range(5))


PEERS = [testdata, sharded, pocketnet]
