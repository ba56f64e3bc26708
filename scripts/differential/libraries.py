"""What a library says of files, each in a bounded time and memory. It may crash: it has a process of its own."""
import os
import pickle
import resource
import signal
import warnings

from judge import Answer

LIMIT = 10  # seconds for a file
MEMORY = 8 << 30


def answers(read, paths):
    """An Answer for each path, in order."""
    while paths:
        got, ended = child(read, paths)
        yield from got
        paths = paths[len(got) :]
        if paths:
            yield Answer(refused=f"the library's process ended with {ended}")
            paths = paths[1:]


def child(read, paths):
    """The answers of a process, which are fewer than the paths where it ended early, and how it ended."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            answer_all(read, paths, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    got = []
    with os.fdopen(ours, "rb") as pipe:
        while True:
            try:
                got.append(pickle.load(pipe))
            except (EOFError, pickle.UnpicklingError):
                break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return got, signal.Signals(-code).name if code < 0 else f"exit code {code}"


def answer_all(read, paths, fd):
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    with os.fdopen(fd, "wb") as pipe:
        for path in paths:
            signal.alarm(LIMIT)
            try:
                answer = read(path)
            except Exception as e:
                answer = Answer(refused=f"{type(e).__name__}: {e}")
            signal.alarm(0)
            pickle.dump(answer, pipe)
            pipe.flush()
