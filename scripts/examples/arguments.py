"""The command line of the examples."""
import pathlib
import signal
import sys


def mount():
    """The directory that is named: where a checkpoint is mounted, or the program ends with a sentence."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # behind `| head` end as other programs do
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} MOUNT")
    if not (pathlib.Path(sys.argv[1]) / "tensors.json").is_file():
        sys.exit(f"{sys.argv[1]}: no checkpoint is mounted there (there is no tensors.json)")
    return sys.argv[1]
