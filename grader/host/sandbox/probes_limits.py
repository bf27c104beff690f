"""The promises about how much a submission takes and what it leaves, each with the probe that tries. See probes.py.

The dangerous ones are bounded by themselves as well: a limit that does not hold costs the host a few hundred MiB
for a moment, never more.
"""

from __future__ import annotations

from grader.host.limits import MIB, Limits
from grader.host.sandbox.bait import Bait
from grader.host.sandbox.promise import Kind, OnPlain, Promise
from grader.report import Outcome


def _processes(bait: Bait) -> str:
    left = bait.processes_left()
    return f"processes {sorted(left)} are left" if left else ""


def _files(bait: Bait) -> str:
    left = bait.remove_files()
    return f"left behind: {', '.join(left)}" if left else ""


_FULL = """
def probe():
    try:
        return fill()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ""
        raise
"""
_LIMITS = (
    Promise(
        "time",
        "it is ended when its time is over, even if it only waits",
        Kind.LIMITS,
        """
def probe():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3)
    return "it waits on"
""",
        OnPlain.HOLDS,
        (Outcome.TIME_LIMIT,),
        Limits(wall_seconds=0.4),
    ),
    Promise(
        "processor-time",
        "it is ended when its processor time is over",
        Kind.LIMITS,
        """
def probe():
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    until = time.process_time() + 5
    while time.process_time() < until:
        pass
    return "it computes on"
""",
        OnPlain.HOLDS,
        (Outcome.TIME_LIMIT,),
        Limits(cpu_seconds=1, wall_seconds=30),
    ),
    Promise(
        "file-size",
        "it cannot write a file larger than the limit",
        Kind.LIMITS,
        """
def probe():
    with open("large", "wb") as file:
        size = got(lambda: os.pwrite(file.fileno(), b"x", 3 << 20), also=[errno.EFBIG])
    return "it writes a file of 3 MiB" if size else ""
""",
        OnPlain.HOLDS,
        limits=Limits(file_bytes=MIB),
    ),
    Promise(
        "open-files",
        "it cannot hold more than a few hundred files open",
        Kind.LIMITS,
        """
def probe():
    kept = []
    for _ in range(1024):
        number = got(os.open, "/dev/null", os.O_RDONLY, also=[errno.EMFILE])
        if number is None:
            break
        kept.append(number)
    for number in kept:
        os.close(number)
    return f"it holds {len(kept)} files open" if len(kept) == 1024 else ""
""",
        OnPlain.HOLDS,
    ),
    Promise(
        "own-limits",
        "it cannot raise its own limits",
        Kind.LIMITS,
        """
def probe():
    for name in ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE"):
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        try:
            resource.setrlimit(kind, (hard, hard + 1))
        except (ValueError, PermissionError):
            continue
        return f"it raises {name}"
    return ""
""",
        OnPlain.VARIES,
    ),
    Promise(
        "own-end",
        "a run that ends its own process is told apart from one that answers",
        Kind.LIMITS,
        """
def probe():
    os._exit(0)
""",
        OnPlain.HOLDS,
        (Outcome.KILLED,),
    ),
    Promise(
        "memory",
        "it is ended when it takes more memory than the limit",
        Kind.LIMITS,
        """
def probe():
    kept = []
    for _ in range(16):
        kept.append(b"x" * (16 << 20))
        time.sleep(0.02)
    time.sleep(1)
    return "it takes 256 MiB"
""",
        OnPlain.HOLDS,
        (Outcome.MEMORY_LIMIT,),
        Limits(memory_bytes=64 * MIB),
        dangerous=True,
    ),
    Promise(
        "memory-of-children",
        "memory of processes that it starts counts as its own",
        Kind.LIMITS,
        """
def probe():
    for _ in range(8):
        if os.fork() == 0:
            kept = b"x" * (24 << 20)
            time.sleep(1.5)
            os._exit(0)
    time.sleep(1.5)
    return "its processes take 192 MiB"
""",
        OnPlain.HOLDS,
        (Outcome.MEMORY_LIMIT,),
        Limits(memory_bytes=96 * MIB),
        dangerous=True,
    ),
    Promise(
        "memory-shared",
        "memory that is shared by a mapping counts as its own",
        Kind.LIMITS,
        """
def probe():
    import mmap
    kept = []
    for _ in range(12):
        kept.append(mmap.mmap(-1, 16 << 20))
        kept[-1].write(b"x" * (16 << 20))
        time.sleep(0.02)
    time.sleep(1)
    return "it takes 192 MiB"
""",
        OnPlain.HOLDS,
        (Outcome.MEMORY_LIMIT,),
        Limits(memory_bytes=64 * MIB),
        dangerous=True,
    ),
    Promise(
        "processes",
        "it is ended when it starts more processes than the limit",
        Kind.LIMITS,
        """
def probe():
    for _ in range(48):
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
    time.sleep(2)
    return "it starts 48 processes"
""",
        OnPlain.HOLDS,
        (Outcome.PROCESS_LIMIT,),
        Limits(processes=12),
        dangerous=True,
    ),
    Promise(
        "output",
        "it is ended when it prints more than the limit",
        Kind.LIMITS,
        """
def probe():
    for _ in range(64):
        os.write(1, b"x" * 65536)
    return "it prints 4 MiB"
""",
        OnPlain.HOLDS,
        (Outcome.OUTPUT_LIMIT,),
        Limits(output_bytes=MIB),
        dangerous=True,
    ),
    Promise(
        "scratch-size",
        "its scratch folder is of a limited size",
        Kind.LIMITS,
        _FULL
        + """
def fill():
    for number in range(24):
        with open(f"file{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 << 20)
    time.sleep(1)
    return "it fills 96 MiB of 32"
""",
        OnPlain.HOLDS,
        (Outcome.RETURNED, Outcome.OUTPUT_LIMIT),
        Limits(scratch_bytes=32 * MIB),
        dangerous=True,
    ),
    Promise(
        "scratch-files",
        "its scratch folder holds a limited number of files",
        Kind.LIMITS,
        _FULL
        + """
def fill():
    for number in range(3000):
        os.close(os.open(f"file{number}", os.O_WRONLY | os.O_CREAT))
    time.sleep(1)
    return "it makes 3000 files of 1000"
""",
        OnPlain.HOLDS,
        (Outcome.RETURNED, Outcome.OUTPUT_LIMIT),
        Limits(scratch_files=1000),
        dangerous=True,
    ),
    Promise(
        "scratch-removed",
        "files that it has removed, but holds open, count as its own",
        Kind.LIMITS,
        _FULL
        + """
def fill():
    kept = []
    for number in range(24):
        kept.append(os.open("file", os.O_WRONLY | os.O_CREAT))
        os.unlink("file")
        os.posix_fallocate(kept[-1], 0, 4 << 20)
    time.sleep(1)
    return "it fills 96 MiB of 32 with files that have no name"
""",
        OnPlain.VARIES,
        (Outcome.RETURNED, Outcome.OUTPUT_LIMIT),
        Limits(scratch_bytes=32 * MIB),
        dangerous=True,
    ),
    Promise(
        "scratch-locked",
        "files in a folder that it has locked count as its own",
        Kind.LIMITS,
        _FULL
        + """
def fill():
    # Its owner may make files there, but not list them.
    os.mkdir("locked", 0o300)
    for number in range(24):
        with open(f"locked/file{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 << 20)
    time.sleep(1)
    return "it fills 96 MiB of 32 in a locked folder"
""",
        OnPlain.VARIES,
        (Outcome.RETURNED, Outcome.OUTPUT_LIMIT),
        Limits(scratch_bytes=32 * MIB),
        dangerous=True,
    ),
)
_LEAVES = (
    Promise(
        "processes-left",
        "no process that it starts outlives it",
        Kind.LEAVES,
        """
def probe():
    for depth in (1, 2, 3):
        started(depth)
    return ""

def started(depth):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if depth > 1:
            started(depth - 1)
            os._exit(0)
        time.sleep(60)
        os._exit(0)
""",
        OnPlain.HOLDS,
        left=_processes,
    ),
    Promise(
        "files-left",
        "no file that it makes outlives it",
        Kind.LEAVES,
        """
def probe():
    os.makedirs("a/b/c")
    os.mkdir("locked", 0o300)
    opened("locked/file", os.O_WRONLY | os.O_CREAT)
    # Shared memory has a name there as well.
    for folder in [".", *PLACES]:
        got(opened, os.path.join(folder, TOKEN), os.O_WRONLY | os.O_CREAT)
    return ""
""",
        left=lambda bait: _files(bait) or ", ".join(bait.scratch_left()),
    ),
    Promise(
        "shared-memory-left",
        "no shared memory that it makes outlives it",
        Kind.LEAVES,
        """
def probe():
    import _posixshmem
    number = got(lambda: _posixshmem.shm_open("/" + TOKEN, os.O_RDWR | os.O_CREAT, mode=0o600))
    if number is not None:
        os.close(number)
    libc.shmget(KEY, 4096, 0o1600)
    return ""
""",
        left=lambda bait: _files(bait) or ("System V shared memory is left" if bait.remove_segment() else ""),
    ),
)
PROMISES = (*_LIMITS, *_LEAVES)
