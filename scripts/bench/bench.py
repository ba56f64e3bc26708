"""What all sections share: where things are, how programs are run, what was found."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from samples import GAVE_UP, Samples

PATIENCE = 60  # seconds; what has not answered by then has lost
SECONDS_A_READ = 0.3  # of peers that are not in the headlines: long enough for a rate
SECONDS_A_LARGE_READ = 1.0  # of the largest file
SECONDS_A_PEER = 10  # for all its rounds, but always one of them

MB, GB, MiB, GiB = 10**6, 10**9, 1 << 20, 1 << 30

SCRIPTS = pathlib.Path(__file__).resolve().parent


class Bench:
    def __init__(self, args):
        self.quick = args.quick
        self.scale = args.scale
        self.weightfs, self.reader, self.work = args.weightfs, args.reader, pathlib.Path(args.work)
        self.gemma = pathlib.Path(args.gemma) if args.gemma else None
        self.samples, self.notes, self.failed = Samples(), [], []
        self.began = time.monotonic()
        self.headline = args.rounds or (3 if args.quick else 7)  # rounds of what the README claims
        self.others = args.rounds or (3 if args.quick else 5)
        self.env = os.environ | {"XDG_CACHE_HOME": str(self.work / "cache"), "LC_ALL": "C"}

    def bytes(self, n):
        """A size, smaller when the script itself is being tried out."""
        return max(MiB, int(n * self.scale))

    def count(self, n):
        return max(100, int(n * self.scale))

    def say(self, text):
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", file=sys.stderr, flush=True)

    def note(self, text):
        """What the reader of the tables must know."""
        self.say(text)
        if text not in self.notes:
            self.notes.append(text)

    def directory(self, name):
        d = self.work / name
        d.mkdir(parents=True, exist_ok=True)
        return d

    def remove(self, path):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def lacks(self, *programs):
        """Whether one of the programs is missing, with a note."""
        missing = [p for p in programs if not shutil.which(p)]
        for p in missing:
            self.note(f"{p} is not installed and was left out")
        return bool(missing)

    def run(self, *command, timeout=PATIENCE, **kwargs):
        """Standard output; a program that fails is an error, one that takes too long is TimeoutExpired."""
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env=self.env, **kwargs)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))[:300]}: exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def read(self, job, *files, drop=False, block=MiB, count=1000, passes=1, limit=None, timeout=PATIENCE):
        """What the reader found: a pass each."""
        flags = ["-b", block, "-n", count, "-p", passes]
        flags += ["-d"] * drop + (["-l", limit] if limit else [])
        return json.loads(self.run(self.reader, *flags, job, *files, timeout=timeout))

    def python(self, task, *args, timeout=PATIENCE):
        """What a task of libraries.py answers, in a fresh interpreter that has imported what it needs before its clock starts."""
        return json.loads(self.run(sys.executable, "-W", "ignore", SCRIPTS / "libraries.py", task, *args, timeout=timeout))

    def timed(self, *command):
        """Seconds that a command takes, and what it prints."""
        began = time.perf_counter()
        try:
            out = self.run(*command)
        except subprocess.TimeoutExpired:
            return GAVE_UP, ""
        return time.perf_counter() - began, out
