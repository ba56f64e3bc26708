"""Load a mounted checkpoint in TensorFlow: python tensorflow_load.py MOUNT

Three ways: tensors over mapped memory, without a copy; files read and decoded by tf.io in a tf.data
pipeline, which has a copy of each; and the rows of one table streamed, which never holds the table.
"""
import json
import pathlib

import numpy as np
import tensorflow as tf

DTYPES = {
    "F64": tf.float64, "F32": tf.float32, "F16": tf.float16, "BF16": tf.bfloat16, "BOOL": tf.bool, "C64": tf.complex64,
    "I64": tf.int64, "I32": tf.int32, "I16": tf.int16, "I8": tf.int8,
    "U64": tf.uint64, "U32": tf.uint32, "U16": tf.uint16, "U8": tf.uint8,
}


def listing(mount):
    return json.loads((pathlib.Path(mount) / "tensors.json").read_text())["tensors"]


def raw(mount, tensor):
    return str(pathlib.Path(mount) / "raw" / (tensor["path"] + ".raw"))


def shaped(data, dtype, shape):
    """Bytes as a tensor of another type, without a copy (but of booleans, which have no bitcast)."""
    data = tf.reshape(data, shape if dtype.size == 1 else [*shape, dtype.size])
    return tf.cast(data, dtype) if dtype == tf.bool else tf.bitcast(data, dtype)


def mapped(mount, tensor):
    """A tensor over a private mapping of its file: nothing is read before it is used."""
    data = tf.zeros(0, tf.uint8)
    if tensor["nbytes"]:  # mmap(2) has no empty maps
        # DLPack knows neither read-only memory nor NumPy's bfloat16: hence mode "c", and bytes.
        array = np.memmap(raw(mount, tensor), np.uint8, mode="c")
        data = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return shaped(data, DTYPES[tensor["dtype"]], tensor["shape"])


def load(mount):
    """The tensors by name, mapped."""
    return {t["name"]: mapped(mount, t) for t in listing(mount)}


def decode(mount):
    """The tensors by name, read by several threads."""
    tensors = listing(mount)
    files = tf.data.Dataset.from_tensor_slices([raw(mount, t) for t in tensors])
    read = files.map(lambda file: tf.io.decode_raw(tf.io.read_file(file), tf.uint8), num_parallel_calls=tf.data.AUTOTUNE)
    return {t["name"]: shaped(data, DTYPES[t["dtype"]], t["shape"]) for t, data in zip(tensors, read)}


def rows(mount, tensor):
    """A dataset of the rows of one tensor."""
    dtype, shape = DTYPES[tensor["dtype"]], tensor["shape"]
    records = tf.data.FixedLengthRecordDataset(raw(mount, tensor), tensor["nbytes"] // shape[0])
    return records.map(lambda record: shaped(tf.io.decode_raw(record, tf.uint8), dtype, shape[1:]))


if __name__ == "__main__":
    from arguments import mount

    for name, tensor in load(mount()).items():
        print(name, tensor.dtype.name, tensor.shape)
