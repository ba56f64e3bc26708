"""The file systems that are compared: each serves the same files, until the with block ends."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from bench import PATIENCE


@dataclass
class Place:
    """A tensor that can be read, the tree it stands in, and who serves it."""
    file: pathlib.Path
    tree: pathlib.Path
    server: int = 0
    mount: float = 0  # seconds until stat of the file answered
    first: float = 0  # and until its first byte was there

    def memory(self):
        """RssAnon and VmRSS of the server and its children, in bytes."""
        return tuple(sum(status(pid, field) for pid in family(self.server)) for field in ("RssAnon", "VmRSS"))


class TimedOut(Exception):
    pass


class Plain:
    """The shard itself, and the tree as files on the file system that holds it."""
    def __init__(self, shard, tree=None, name="pread"):
        self.name, self.shard, self.tree = name, shard, tree

    @contextlib.contextmanager
    def open(self, bench):
        began = time.perf_counter()
        first_byte(self.shard)
        took = time.perf_counter() - began
        yield Place(self.shard, self.tree, first=took)


class Mounted:
    def __init__(self, name, command, archive, file, tree="."):
        self.name, self.command, self.archive, self.file, self.tree = name, command, archive, file, tree

    @contextlib.contextmanager
    def open(self, bench):
        with serving(bench, self.command, self.archive) as (process, dir, began):
            file = dir / self.tree / self.file
            mounted = await_file(process, file, began)
            first_byte(file)
            yield Place(file, dir / self.tree, process.pid, mounted - began, time.perf_counter() - began)


def weightfs(bench, source, file, *flags, name="weightfs", view="raw"):
    return Mounted(name, [bench.weightfs, "mount", "--quiet", "-f", *flags, "{archive}", "{dir}"], source, file, view)


def squashfuse(archive, file):
    return Mounted("squashfuse_ll", ["squashfuse_ll", "-f", "{archive}", "{dir}"], archive, file)


def fuse_zip(archive, file):
    return Mounted("fuse-zip", ["fuse-zip", "-f", "-r", "{archive}", "{dir}"], archive, file)


def archivemount(archive, file):
    return Mounted("archivemount", ["archivemount", "-f", "-o", "readonly", "{archive}", "{dir}"], archive, file)


def ratarmount(archive, file):
    program = pathlib.Path(sys.executable).with_name("ratarmount")
    # The index would be written beside the archive and be there the next time.
    return Mounted("ratarmount", [program, "-f", "--index-file", ":memory:", "{archive}", "{dir}"], archive, file)


@contextlib.contextmanager
def serving(bench, command, archive):
    """Starts a server in the foreground; it and its mount are gone afterwards."""
    dir = pathlib.Path(tempfile.mkdtemp(prefix="mnt.", dir=bench.work))
    words = [str(w).format(archive=archive, dir=dir) for w in command]
    with open(bench.work / "server.log", "w") as log:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=bench.env)
    try:
        yield process, dir, began
    finally:
        end(process, dir)


def end(process, dir):
    unmount(dir)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        unmount(dir)
    with contextlib.suppress(OSError):  # or it would hide why we are here
        dir.rmdir()


def unmount(dir):
    """As root by umount(8): some peers are mounted by no fusermount. What is busy is detached."""
    plain, lazy = (["umount"], ["umount", "-l"]) if os.geteuid() == 0 else (["fusermount3", "-u"], ["fusermount3", "-uz"])
    for command in (plain, plain, lazy):
        if not is_mounted(dir):
            return
        subprocess.run([*command, str(dir)], capture_output=True)
        time.sleep(0.05 * is_mounted(dir))


def is_mounted(dir):
    with open("/proc/self/mounts") as f:
        return any(line.split()[1] == str(dir) for line in f)


def await_file(process, file, began):
    """The time at which stat answered. A server that answers no more is killed, or stat would never return."""
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        while True:
            try:
                os.stat(file)
                return time.perf_counter()
            except OSError:
                time.sleep(0.0005)
            if time.perf_counter() - began > PATIENCE:
                raise TimedOut(f"{file} does not appear")
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}: {file}")
    finally:
        watchdog.cancel()


def first_byte(file):
    fd = os.open(file, os.O_RDONLY)
    try:
        os.pread(fd, 1, 0)
    finally:
        os.close(fd)


def family(pid):
    yield pid
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def status(pid, field):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field + ":"))
