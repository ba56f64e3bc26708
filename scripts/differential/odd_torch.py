"""PyTorch: what torch.save writes in both formats, with the archive or the pickle in it damaged."""
import collections
import io
import pathlib
import pickle
import sys
import traceback
import zipfile

import torch

import damage
from judge import Answer, Tensor

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import gen_torch_testdata as made_by  # noqa: E402

LARGEST = 1 << 22  # elements that are compared
OLD = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]  # with a storage class, which the legacy format needs
DTYPES = [getattr(torch, name) for name in made_by.DTYPES if hasattr(torch, name) and not name.startswith("q") and name != "bcomplex32"]

REFUSED = [
    (r"has another name in its local header|by its local header", "readers that believe one or the other would see two files (np-044)"),
    (r"several PyTorch archives in one file", "the end record says that the directory lies before other bytes"),
    (r"the keys of the storages are .*, no list", "torch loops over anything"),
    (r"record .* (has no local header|is truncated)", "torch looks at no record before it needs it"),
    (r"checksum is \w+, not", "torch does not look at the sums of storages"),
    (r"the file has no storage", "torch leaves the tensor as the memory was"),
    (r"central directory is damaged", "a count or a size of the end record is wrong"),
    (r"a pickle, but not of torch.save", "the number of the protocol, at which torch only warns"),
    (r"opcode REDUCE: the arguments are no tuple", "torch takes a list, which no pickler writes"),
    (r"begins inside record", "records that share bytes"),
    (r"has compression method \d+, but \d+ in its local header", "readers that believe one or the other would see two files (np-044)"),
    (r"has no central directory at its end", "the end record has a longer comment than there is"),
    (r"version\" is .*, no number", "torch reads the digits in front"),
    (r"protocol \d+ is newer than 5", "torch warns and goes on"),
    (r"is there twice, and readers disagree", "torch takes the first, most others the last (pt-026)"),
]
ACCEPTED = [
    (r"type object 'torch.storage.UntypedStorage' has no attribute 'dtype'", "torch cannot read what it writes of new types in the legacy format"),
    (r"of \.storage_alignment: ", "where the records lie is in the archive's directory"),
    (r"failed reading zip archive: not a ZIP archive", "the records of zip64 are not looked for where the end record says all"),
    (r"Unsupported operand \d+", "weights_only knows the opcodes of torch.save alone (pytorch#118092)"),
    (r"'StorageType' object is not callable", "nothing is called; what is not known is shown by what is in it"),
    (r"unsupported multidisk archive", "the number of the disk is not looked at"),
    (r"unsupported central directory size|invalid header or archive is corrupted", "the directory is read where the end record says that it begins, whatever size it says"),
    (r"PyTorchFileReader\(name_or_buffer\)", "names of records are bytes"),
    (r"size is inconsistent with indices|found negative index|cannot set is_coalesced", "indices and values of a sparse tensor are shown as they are"),
    (r"file in archive is not in a subdirectory", "records beside the archive's directory are passed over"),
    (r"Unsupported global: ", "what is no tensor is shown by what is in it, and not called"),
    (r"of the log: ", "torch wants the archive's id as text, for its log"),
]


class Listing(made_by.Listing):
    """With what the tests' listing has no need of: names that are taken, tensors that are larger than their storage."""

    def add(self, obj, path=()):
        if not isinstance(obj, torch.storage.TypedStorage):
            return super().add(obj, path)
        self.tensors[".".join(map(str, path))] = Tensor(made_by.DTYPES.get(str(obj.dtype).removeprefix("torch."), "U8"), [obj.size()], bytes(obj._untyped_storage.tolist()))

    def tensor(self, t, name, path):
        if t.layout != torch.strided or t.device.type == "meta" or t.is_quantized:
            return super().tensor(t, name, path)
        number, given = 1, name
        while given in self.tensors:
            number += 1
            given = f"{name}~{number}"
        dtype, shape = made_by.DTYPES[str(t.dtype).removeprefix("torch.")], list(t.shape)
        if t.dtype == torch.float4_e2m1fn_x2:
            shape = shape[:-1] + [shape[-1] * 2] if shape else [2]
        if t.numel() == 1:  # whose strides may be anything
            t = t.as_strided(t.shape, (1,) * t.ndim, t.storage_offset())
        self.tensors[given] = Tensor(dtype, shape, made_by.elements(t) if t.numel() <= LARGEST else None)
        for key, value in t.__dict__.items():
            self.add(value, path + (key,))


def read(path):
    listing = Listing()
    try:
        listing.add(torch.load(path, map_location="cpu", weights_only=True))
    except pickle.UnpicklingError as e:
        raise ValueError(str(e).partition("WeightsUnpickler error: ")[2] or str(e)) from e
    except ValueError as e:
        line = traceback.extract_tb(e.__traceback__)[-1].line
        raise ValueError("of the log: " * ("serialization_id" in line) + "of .storage_alignment: " * ("alignment" in line) + f"{e} {line}") from e
    return Answer(tensors={name: t if isinstance(t, Tensor) else Tensor(t["dtype"], t["shape"], None) for name, t in listing.tensors.items()})


def make(rng):
    torch.manual_seed(rng.randrange(1 << 30))
    legacy = rng.random() < 0.4
    data = saved(rng, legacy)
    if legacy:
        return {"model.pt": damage.damaged(rng, data, head=max(len(data) - 400, 200))}
    if rng.random() < 0.7:
        data = rewritten(rng, data)
    return {"model.pt": damage.damaged(rng, data, chance=0.3)}


def saved(rng, legacy):
    while True:
        out = io.BytesIO()
        try:
            torch.save(contents(rng), out, _use_new_zipfile_serialization=not legacy, pickle_protocol=2)
        except RuntimeError:  # one storage as two types
            continue
        return out.getvalue()


def rewritten(rng, data):
    """The archive anew, its records damaged, some deflated or in another order."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        if rng.random() < 0.05:
            rng.shuffle(names)
        for name in names:
            record = old.read(name)
            if name.endswith("data.pkl"):
                record = damage.damaged(rng, record, chance=0.5)
            elif rng.random() < 0.05:
                record = damage.damaged(rng, record)
            if rng.random() < 0.02:
                continue
            if rng.random() < 0.02:
                name = rng.choice([name.upper(), "other/" + name, name.replace("data/", "DATA/"), name + "x"])
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = rng.choice([zipfile.ZIP_STORED] * 9 + [zipfile.ZIP_DEFLATED])
            new.writestr(info, record)
    return out.getvalue()


def contents(rng):
    kept = [tensor(rng, rng.choice([OLD, OLD, DTYPES])) for _ in range(rng.choice([1, 2, 3]))]
    items = [(name, value(rng, kept)) for name in damage.names(rng, rng.choice([0, 1, 2, 3, 5]))]
    return rng.choice([dict(items), dict(items), collections.OrderedDict(items), [v for _, v in items], tuple(v for _, v in items), kept[0], {"model": dict(items), "step": 3, 7: kept[-1]}])


def value(rng, kept):
    if rng.random() < 0.6:
        return view(rng, rng.choice(kept))
    return rng.choice([None, True, 1, 1 << 40, 1.5, "text", [rng.choice(kept)], {"a": {"b": rng.choice(kept)}}, {1: kept[0], True: 2}, torch.nn.Parameter(torch.ones(2)), torch.float16,
                       (), torch.Size([2, 3]), torch.ones(2, 2).to_sparse(), torch.empty(2, device="meta"), kept[0].untyped_storage(), collections.Counter("ab"), {2.5: kept[0], None: kept[-1], (1, 2): kept[0]}])  # fmt: skip


def tensor(rng, dtypes):
    dtype, shape = rng.choice(dtypes), damage.shape(rng)
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (max(1, torch.Size(shape).numel() * 16),), dtype=torch.uint8)
    size = torch.empty(0, dtype=dtype).element_size()
    return raw[: torch.Size(shape).numel() * size].clone().view(dtype).reshape(shape)


def view(rng, t):
    if t.dtype == torch.float4_e2m1fn_x2:
        return t
    match rng.randrange(8):
        case 0 if t.ndim > 1:
            return t.transpose(0, -1)
        case 1 if t.ndim:
            return t[1:]
        case 2 if t.ndim:
            return t[::2]
        case 3:
            return t.unsqueeze(0).expand(rng.choice([2, 3, 1 << 20, 1 << 40]), *t.shape)
        case 4 if t.dtype in (torch.complex64, torch.complex128):  # of others torch loses the sign of NaN
            return t.conj()
        case 5 if t.ndim:
            return t.reshape(-1)[:1]
    return t
