#!/usr/bin/env python3
"""Writes format/decode/grids.bin: the grid points of ggml's IQ types, as gguf-py holds them.

A point is a little-endian 16-bit word: eight codes of two bits, or four of four, the first element
lowest. A code is an index into the grid's magnitudes, which the decoder knows.
"""

import pathlib

import numpy as np
from gguf import quants

GRIDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]


def points(name):
    trait = getattr(quants, name)
    trait.init_grid()
    grid = trait.grid.reshape(trait.grid_shape)
    codes = np.searchsorted(np.array(trait.grid_map, np.float32), grid).astype(np.uint16)
    width = 16 // grid.shape[1]
    return (codes << np.arange(0, 16, width, dtype=np.uint16)).sum(axis=1).astype("<u2")


out = pathlib.Path(__file__).parent.parent / "format" / "decode" / "grids.bin"
out.write_bytes(b"".join(points(name).tobytes() for name in GRIDS))
