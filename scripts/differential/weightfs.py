"""What weightfs says of a file."""
import json
import os
import re
import subprocess

from judge import Answer, Failure, Tensor

PROGRAM = "weightfs"
LIMIT = 20  # seconds for a file
LARGEST = 32 << 20  # bytes that are compared
REFUSED = {11, 12, 13}  # not there, malformed, something missing


def run(*args):
    try:
        done = subprocess.run([PROGRAM, *map(os.fspath, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Failure(f"weightfs {args[0]} took longer than {LIMIT} s") from None
    text = done.stderr.decode(errors="replace").strip()
    if done.returncode not in {0, *REFUSED} and not unreadable(text):
        raise Failure(f"weightfs {args[0]} ended with exit code {done.returncode}: {text[:2000]}")
    return done.returncode, done.stdout, text


def unreadable(text):
    """A fault that only reading shows: deflated bytes are not looked at before."""
    return re.search(r": unpacking ", text) and "goroutine" not in text


def answer(path, out):
    code, listing, text = run("ls", "--json", "--no-index", path)
    if code == 0:
        return read(path, out, json.loads(listing), [])
    if "--lenient reads it" not in text:
        return Answer(refused=text)
    code, listing, more = run("ls", "--json", "--no-index", "--lenient", path)
    if code:
        raise Failure(f"--lenient does not read it: {more}")
    lenient = read(path, out, json.loads(listing), ["--lenient"])
    return Answer(refused=text, tensors=lenient.tensors, warnings=lenient.warnings)


def read(path, out, doc, flags):
    small = doc["total_bytes"] <= LARGEST
    if small and doc["tensors"]:
        out.mkdir()
        code, _, text = run("cp", "-r", "-q", "--no-index", *flags, path, "raw", out)
        if code or text and unreadable(text):
            return Answer(refused=text)
    tensors = {}
    for t in doc["tensors"]:
        data = (out / "raw" / (t["path"] + ".raw")).read_bytes() if small else None
        if t["name"] in tensors:
            raise Failure(f"two tensors are called {t['name']!r}")
        if data is not None and len(data) != t["nbytes"]:
            raise Failure(f"{t['name']!r} has {len(data)} bytes in raw/, {t['nbytes']} in tensors.json")
        tensors[t["name"]] = Tensor(t["dtype"], t["shape"], data)
    return Answer(tensors=tensors, warnings=doc["warnings"])
