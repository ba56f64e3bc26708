"""Reading as an ordinary user, and reading all of a large checkpoint."""
import os
import shutil
import subprocess
import sys
import threading

import inputs
import mounts
from bench import SCRIPTS, GiB
from inputs import Tensor
from rounds import play, reads, repeat

USER = "as an ordinary user, 1 GiB"
WALK = "sha256sum over a 4 GiB checkpoint"
NOBODY = 65534

# A /dev/fuse that everyone may open, in a mount namespace of its own: nothing changes outside.
NAMESPACE = """set -e
mount -t tmpfs -o mode=755 none "$1"
mknod -m 666 "$1/fuse" c 10 229
mount --bind "$1/fuse" /dev/fuse
user=$2
shift 2
exec setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all "$@"
"""


def user(bench):
    """As root it starts itself again as nobody, and takes over what that one measured."""
    if os.geteuid() != 0:
        return as_user(bench, bench.work)
    if bench.lacks("fusermount3", "unshare", "setpriv", "squashfuse_ll", "mksquashfs"):
        return
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")  # ours may lie below a home that is closed to others
    d = bench.directory("user")
    for program in (bench.weightfs, bench.reader):
        shutil.copy(program, d)
    shutil.copytree(SCRIPTS, d / "scripts")
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", d], check=True)
    os.chmod(bench.work, 0o755)
    again = [python, d / "scripts", "--only", "user", "--rounds", bench.headline, "--scale", bench.scale, "--work", d,
             "--weightfs", d / bench.weightfs.name, "--reader", d / bench.reader.name, "--json", d / "samples.json"]
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", NAMESPACE, "sh", bench.directory("dev"), NOBODY, *again]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if (d / "samples.json").exists():
        bench.samples.load(d / "samples.json")
    else:
        bench.note(f"{USER}: not measured: {done.stderr.strip().splitlines()[-1:]}")
    bench.remove(d)


def as_user(bench, d):
    """Without the right to raise the read-ahead, as most will use it."""
    n = bench.bytes(GiB)
    shard = inputs.safetensors(d / "model.safetensors", [Tensor("model.weight", "F32", n // 4)])
    (d / "tree").mkdir()
    os.link(shard, d / "tree/model.weight.raw")
    archive = inputs.squashfs(d / "tree.squashfs", d / "tree")
    systems = [mounts.Plain(shard), mounts.weightfs(bench, shard, "model.weight.raw", "--no-index"), mounts.squashfuse(archive, "model.weight.raw")]
    bench.say(USER)
    for round in repeat(bench.headline):
        play(bench, USER, systems, round, reads()[:2])
    shard.unlink()
    archive.unlink()


def walk(bench):
    index = inputs.sharded(bench.directory("walk") / "set", list(inputs.layers(bench.bytes(4 * GiB), 288)), 4)
    last = list(inputs.layers(bench.bytes(4 * GiB), 288))[-1]
    bench.say(WALK)
    with mounts.weightfs(bench, index, f"{last.path}.raw", "--no-index").open(bench) as place, Watch(place) as watch:
        seconds, out = bench.timed("sh", "-c", 'find "$1" -type f -exec sha256sum {} + | wc -l', "sh", place.tree)
    assert int(out) == 288, out
    bench.samples.add(WALK, "weightfs", "anon before", 0, watch.before, "B")
    bench.samples.add(WALK, "weightfs", "most anon", 0, watch.most, "B")
    bench.samples.add(WALK, "weightfs", "anon growth", 0, watch.most - watch.before, "B")
    bench.samples.add(WALK, "weightfs", "seconds", 0, seconds, "s")
    bench.remove(index.parent.parent)


class Watch:
    """Looks at the server's memory ten times a second."""

    def __init__(self, place):
        self.place, self.stop = place, threading.Event()
        self.before = self.most = place.memory()[0]

    def look(self):
        while not self.stop.wait(0.1):
            self.most = max(self.most, self.place.memory()[0])

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
