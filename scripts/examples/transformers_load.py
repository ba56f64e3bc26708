"""Load a mounted model in transformers: python transformers_load.py MOUNT

assembled/ shows the whole checkpoint, however many shards it has, as one safetensors file beside
the configuration and the tokenizer. No line differs from loading any other local model.
"""
import pathlib

from transformers import AutoModelForCausalLM


def load(mount):
    return AutoModelForCausalLM.from_pretrained(pathlib.Path(mount) / "assembled", dtype="auto", local_files_only=True)


if __name__ == "__main__":
    from arguments import mount

    print(load(mount()))
