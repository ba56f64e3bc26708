"""Runs of the ways of loading, each in a process of its own."""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from ways import EXAMPLES, SUITES

LIBRARIES = "numpy", "safetensors", "torch", "transformers", "tensorflow_cpu", "tensorflow-cpu", "jax"
HERE = pathlib.Path(__file__).parent


def run(*command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, weightfs, venvs, checkpoints):
        self.weightfs, self.venvs, self.checkpoints = weightfs, venvs, checkpoints
        self.results = {}  # suite: row: one result a round
        self.server = 0    # most anonymous memory of a server, in KiB

    def round(self, name, number):
        """Every way once; in every second round in the opposite order, since the load of a machine drifts."""
        suite = SUITES[name]
        source = self.checkpoints / suite.source
        steps = [("own", way) for way in suite.own] + [("mounted", way) for way in suite.mounted]
        for kind, way in steps[::-1] if number % 2 else steps:
            if kind == "own":
                self.keep(name, way, self.once(name, kind, way, source))
                continue
            with self.mounted(source) as mount:
                for state in "first", "again":
                    self.keep(name, f"{way}, {state}", self.once(name, kind, way, mount))

    def example(self, name):
        """The example as a program."""
        script = EXAMPLES / f"{name}_load.py"
        if script.exists():
            with self.mounted(self.checkpoints / SUITES[name].source) as mount:
                if not self.python(name, script, mount).strip():
                    sys.exit(f"{script.name} printed nothing")

    def odd(self, name):
        """Small tensors of every type, by all ways of a suite that reads safetensors of any names."""
        suite, source = SUITES[name], self.checkpoints / "odd"
        results = {way: [self.once(name, "own", way, source)] for way in suite.own}
        with self.mounted(source) as mount:
            for kind in "mounted", "unmeasured":
                results |= {way: [self.once(name, kind, way, mount)] for way in getattr(suite, kind)}
        compare(name, results)

    def once(self, name, kind, way, path):
        return json.loads(self.python(name, HERE / "once.py", name, kind, way, path).splitlines()[-1])

    def python(self, name, *words):
        return run(self.venvs / SUITES[name].venv / "bin" / "python", "-B", *words)

    def versions(self, name):
        """The libraries of a suite's environment."""
        listed = json.loads(self.python(name, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
        return [f"{package['name']} {package['version']}" for package in listed if package["name"] in LIBRARIES]

    def keep(self, name, row, result):
        self.results.setdefault(name, {}).setdefault(row, []).append(result)
        print(f"{name}: {row}: {result['read']:.2f} s", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def mounted(self, source):
        with tempfile.TemporaryDirectory(prefix="weightfs-frameworks-") as directory:
            server = json.loads(run(self.weightfs, "mount", "--json", source, directory))["pid"]
            try:
                yield directory
                self.server = max(self.server, anonymous(server))
            finally:
                run(self.weightfs, "umount", directory)


def compare(name, rows):
    """Every way must have given the same names and bytes as the framework's own loader."""
    want = rows[next(iter(SUITES[name].own))][0]["sums"]
    for row, results in rows.items():
        for got in (result["sums"] for result in results):
            differing = sorted(key for key in want.keys() | got.keys() if want.get(key) != got.get(key))
            if differing:
                sys.exit(f"{name}: {row}: {len(differing)} tensors differ, such as {differing[0]}")


def anonymous(pid):
    """Memory of a process that no file stands behind, in KiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0
