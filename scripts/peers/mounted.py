"""A mount for as long as a with block lasts."""
import contextlib
import json
import pathlib
import subprocess
import tempfile

WEIGHTFS = "weightfs"


@contextlib.contextmanager
def mounted(source, *flags):
    with tempfile.TemporaryDirectory(prefix="weightfs-peers-") as directory:
        run("mount", "--quiet", *flags, source, directory)
        try:
            yield pathlib.Path(directory)
        except BaseException:
            run("umount", "--lazy", directory)  # what failed may still hold a map
            raise
        run("umount", directory)


def run(*args):
    done = subprocess.run([WEIGHTFS, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise AssertionError(f"weightfs {' '.join(map(str, args))}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def listing(mount):
    return json.loads((mount / "tensors.json").read_text())
