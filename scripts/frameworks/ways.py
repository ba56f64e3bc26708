"""The ways of loading that are compared: of each framework its own loaders of a file, and the
examples, which read a mount of the same file. A way returns the tensors by name. Frameworks are
imported where they are used: no environment has all of them."""
import dataclasses
import functools
import importlib
import json
import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))


@dataclasses.dataclass
class Suite:
    """What one framework does with one file. The first of its own loaders is what the others are compared with."""
    title: str
    venv: str
    source: str
    prepare: object   # imports and starts what no way is to be charged with
    own: dict
    mounted: dict
    bytes_of: object  # a tensor's memory as an array of bytes, without a copy
    unmeasured: dict = dataclasses.field(default_factory=dict)  # more ways through a mount, tried on small tensors


def every_shard(module, source):
    load_file = importlib.import_module(module).load_file
    return {name: tensor for shard in sorted(source.glob("*.safetensors")) for name, tensor in load_file(shard).items()}


def listing(mount):
    return json.loads((mount / "tensors.json").read_text())["tensors"]


# NumPy

def numpy_prepare():
    import numpy_load  # noqa: F401


def numpy_npz(source):
    import numpy as np
    with np.load(source) as archive:
        return dict(archive)


def numpy_mapped(mount):
    import numpy_load
    return numpy_load.load(mount)


def numpy_bytes(array):
    import numpy as np
    return np.asarray(array).reshape(-1).view(np.uint8)


# PyTorch

def torch_prepare():
    import safetensors.torch  # noqa: F401
    import torch_load  # noqa: F401


def torch_own(source, **options):
    import torch
    return torch.load(source, **options)


def torch_from_file(mount):
    import torch_load
    return torch_load.state_dict(mount)


def torch_from_buffer(mount):
    import torch_load
    return {t["name"]: torch_load.from_buffer(mount / "raw" / (t["path"] + ".raw"), torch_load.DTYPES[t["dtype"]], t["shape"]) for t in listing(mount)}


def torch_assigned(mount):
    """A whole model, built without memory for its weights, which gives an answer."""
    import torch

    import models
    import torch_load
    with torch.device("meta"):
        model = models.encoder(sum(t["nbytes"] for t in listing(mount)))
    model = torch_load.assign(model, mount)
    with torch.inference_mode():
        model.eval()(torch.zeros(1, 1, model.layers[0].linear1.in_features, dtype=torch.bfloat16))
    return model.state_dict()


def torch_assembled(mount):
    from safetensors.torch import load_file
    return load_file(mount / "assembled" / "model.safetensors")


def torch_bytes(tensor):
    import torch
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


# transformers

def transformers_prepare():
    import transformers.models.llama.modeling_llama  # noqa: F401
    import transformers_load  # noqa: F401


def transformers_own(source):
    import transformers
    return weights_and_answer(transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto", local_files_only=True))


def transformers_assembled(mount):
    import transformers_load
    return weights_and_answer(transformers_load.load(mount))


def weights_and_answer(model):
    import torch
    with torch.inference_mode():
        logits = model.eval()(torch.arange(4)[None]).logits
    return model.state_dict() | {"logits": logits}


# TensorFlow

def tensorflow_prepare():
    import safetensors.tensorflow  # noqa: F401
    import tensorflow as tf
    import tensorflow_load  # noqa: F401
    tf.zeros(1)


def tensorflow_mapped(mount):
    import tensorflow_load
    return tensorflow_load.load(mount)


def tensorflow_decoded(mount):
    import tensorflow_load
    return tensorflow_load.decode(mount)


def tensorflow_rows(mount):
    """The matrices put together from their rows, the rest as it is."""
    import tensorflow as tf

    import tensorflow_load as example
    return {t["name"]: tf.stack(list(example.rows(mount, t))) if len(t["shape"]) == 2 and t["nbytes"] else example.mapped(mount, t) for t in listing(mount)}


def tensorflow_bytes(tensor):
    import numpy as np
    import tensorflow as tf
    data = tf.cast(tensor, tf.uint8) if tensor.dtype == tf.bool else tf.bitcast(tensor, tf.uint8)
    return np.asarray(memoryview(data)).reshape(-1)


# JAX

def jax_prepare():
    import jax
    import jax_load  # noqa: F401
    import safetensors.flax  # noqa: F401
    jax.numpy.zeros(1).block_until_ready()


def jax_mapped(mount):
    import jax_load
    return jax_load.load(mount)


SUITES = {
    "numpy": Suite(
        "NumPy, .npz", "torch", "arrays.npz", numpy_prepare,
        {"np.load, every array": numpy_npz},
        {"npy/ by np.load(mmap_mode=\"r\")": numpy_mapped}, numpy_bytes),
    "torch": Suite(
        "PyTorch, .pt", "torch", "encoder.pt", torch_prepare,
        {"torch.load": torch_own, "torch.load(mmap=True)": functools.partial(torch_own, mmap=True)},
        {"raw/ by torch.from_file": torch_from_file, "raw/ by mmap and torch.frombuffer": torch_from_buffer,
         "raw/ assigned to a model, one forward": torch_assigned}, torch_bytes),
    "safetensors": Suite(
        "PyTorch, safetensors in shards", "torch", "llama", torch_prepare,
        {"safetensors.torch.load_file": functools.partial(every_shard, "safetensors.torch")},
        {"raw/ by torch.from_file": torch_from_file, "assembled/ by load_file": torch_assembled}, torch_bytes),
    "transformers": Suite(
        "transformers, safetensors in shards", "torch", "llama", transformers_prepare,
        {"from_pretrained, one forward": transformers_own},
        {"assembled/ by from_pretrained, one forward": transformers_assembled}, torch_bytes),
    "tensorflow": Suite(
        "TensorFlow, safetensors in shards", "tensorflow", "llama", tensorflow_prepare,
        {"safetensors.tensorflow.load_file": functools.partial(every_shard, "safetensors.tensorflow")},
        {"raw/ by np.memmap and DLPack": tensorflow_mapped, "raw/ by tf.data and tf.io.decode_raw": tensorflow_decoded}, tensorflow_bytes,
        {"raw/ by tf.data, row by row": tensorflow_rows}),
    "jax": Suite(
        "JAX, safetensors in shards", "jax", "llama", jax_prepare,
        {"safetensors.flax.load_file": functools.partial(every_shard, "safetensors.flax")},
        {"raw/ by np.memmap and jax.device_put": jax_mapped}, numpy_bytes,
        {"npy/ by np.load and ml_dtypes": numpy_mapped}),
}
