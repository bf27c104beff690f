"""The promises about what a submission sees, reads, writes and reaches, each with the probe that tries.

`HEAD` stands before every probe. What it takes for a refusal is listed there: any other error is a fault of the
probe and is reported as one. The names in capitals are the facts of bait.py.
"""

from __future__ import annotations

from grader.host.sandbox.promise import Kind, OnPlain, Promise

HEAD = '''
import ctypes, errno, fcntl, os, platform, resource, signal, socket, struct, subprocess, sys, time

REFUSALS = {errno.EPERM, errno.EACCES, errno.ENOENT, errno.ESRCH, errno.EROFS, errno.ENOSYS}
libc = ctypes.CDLL(None, use_errno=True)

def got(action, *arguments, also=()):
    """What an action gives; None where it was refused. Every other error is this probe's own."""
    try:
        return action(*arguments)
    except OSError as error:
        if error.errno in REFUSALS or error.errno in also:
            return None
        raise

def could(action, *arguments, also=()):
    """Whether an action was let through."""
    return got(lambda: (action(*arguments),), also=also) is not None

def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK))

def content(path):
    """The first bytes of a file, also by another way to it; empty where they cannot be had."""
    for way in (path, "/proc/self/root" + path):
        file = got(os.open, way, os.O_RDONLY)
        if file is not None:
            try:
                data = got(os.read, file, 1 << 16, also=[errno.EIO, errno.EINVAL])
            finally:
                os.close(file)
            if data:
                return data
    return b""

def listed(folder):
    return got(os.listdir, folder) or []

def first(tries):
    """The first thing that could be done."""
    return next((text for text, done in tries if done), "")

def others():
    """Processes that are not this one: its parent, the first of all, those of the host."""
    return [pid for pid in dict.fromkeys([os.getppid(), 1, *PIDS]) if pid not in (0, os.getpid())]

def reached(name, *arguments):
    """Whether the kernel takes up a call of the C library, whatever it answers then."""
    return answered(getattr(libc, name), *arguments)

def answered(function, *arguments):
    ctypes.set_errno(0)
    return function(*arguments) != -1 or ctypes.get_errno() not in (errno.EPERM, errno.EACCES, errno.ENOSYS)

NUMBERS = {
    "x86_64": {"bpf": 321, "io_uring_setup": 425, "keyctl": 250, "userfaultfd": 323, "perf_event_open": 298,
               "clone": 56, "clone3": 435, "pidfd_open": 434, "kcmp": 312, "add_key": 248, "ioprio_set": 251},
    "aarch64": {"bpf": 280, "io_uring_setup": 425, "keyctl": 219, "userfaultfd": 282, "perf_event_open": 241,
                "clone": 220, "clone3": 435, "pidfd_open": 434, "kcmp": 272, "add_key": 217, "ioprio_set": 30},
}
KNOWN = NUMBERS.get(platform.machine(), {})

def called(name, *arguments):
    """`reached`, for a call that the C library has no name for."""
    return answered(libc.syscall, ctypes.c_long(KNOWN[name]), *arguments)

def in_child(action):
    """Whether an action is true in a fork of its own; one that the kernel ends for it was not."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(10 if action() else 11)
        except BaseException:
            os._exit(12)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status) == 12:
        raise RuntimeError("the fork of the probe went wrong")
    return os.WEXITSTATUS(status) == 10

def connected(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)

UNREACHED = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL)
UNKNOWN = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
'''

SEES = (
    Promise(
        "processes-listed",
        "it cannot list other processes",
        Kind.SEES,
        """
def probe():
    there = [name for name in listed("/proc") if name.isdigit() and int(name) != os.getpid()]
    return f"it lists {len(there)} other processes" if there else ""
""",
    ),
    Promise(
        "processes-read",
        "it cannot read another process's command line, environment, files or memory in /proc",
        Kind.SEES,
        """
def probe():
    names = ("cmdline", "environ", "status", "stat", "maps", "mem", "auxv", "mountinfo", "net/tcp")
    for pid in others():
        for name in names:
            if could(opened, f"/proc/{pid}/{name}"):
                return f"it opens /proc/{pid}/{name}"
        for name in ("", "fd", "task", "root", "cwd"):
            if listed(f"/proc/{pid}/{name}"):
                return f"it lists /proc/{pid}/{name}"
    return ""
""",
    ),
    Promise(
        "memory-read",
        "it cannot read or write another process's memory by a system call",
        Kind.SEES,
        """
class Piece(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]

def probe():
    mine = ctypes.create_string_buffer(16)
    here = Piece(ctypes.addressof(mine), 16)
    # Forks share their layout: where this object lies here, the same one lies in the process it was forked from.
    there = Piece(id(sys.modules), 16)
    arguments = (ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return first((f"it reads the memory of process {pid}", libc.process_vm_readv(pid, *arguments) > 0)
                 for pid in others())
""",
        OnPlain.VARIES,
    ),
    Promise(
        "environment",
        "its environment holds only what the grader sets",
        Kind.SEES,
        """
def probe():
    known = {*VARIABLES, "HOME", "TMPDIR", "PWD"}
    more = sorted(set(os.environ) - known)
    secret = [name for name, value in os.environ.items() if TOKEN in value]
    return f"it has {', '.join(more + secret)}" if more or secret else ""
""",
        OnPlain.HOLDS,
    ),
    Promise(
        "descriptors",
        "no file or socket is open to it but its input, its output and its channel",
        Kind.SEES,
        """
def probe():
    more = [number for number in range(4, 4096) if got(os.fstat, number, also=[errno.EBADF])]
    return f"descriptors {more} are open" if more else ""
""",
        OnPlain.HOLDS,
    ),
    Promise(
        "network-seen",
        "it cannot see the host's connections and addresses",
        Kind.SEES,
        """
def probe():
    paths = [f"/proc/{of}/net/{name}" for of in ("self", "thread-self") for name in ("tcp", "unix", "dev", "route")]
    # A table of this process's own empty network names nothing but the loopback.
    seen = {path: content(path).decode(errors="replace").splitlines() for path in paths}
    return first((f"it reads {path}", any(f":{TCP:04X} " in line or TOKEN in line for line in lines))
                 for path, lines in seen.items())
""",
    ),
    Promise(
        "mounts-seen",
        "it cannot see what the host has mounted, nor how the host was started",
        Kind.SEES,
        """
def probe():
    # Where the root itself is one of the sandbox, so are its mounts.
    paths = ("/proc/cmdline", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/sys/kernel/osrelease")
    return first((f"it reads {path}", content(path)) for path in paths)
""",
    ),
    Promise(
        "machine-seen",
        "it cannot read the machine's devices and settings",
        Kind.SEES,
        """
def probe():
    folders = ("/sys/class", "/sys/kernel", "/sys/fs", "/proc/sys", "/dev", "/etc", "/run", "/var")
    names = ("kmsg", "mem", "kvm", "fuse", "ptmx", "net/tun", "vda", "sda", "nvme0n1")
    return (
        first((f"it lists {folder}", set(listed(folder)) - EXPECTED.get(folder, set())) for folder in folders)
        or first((f"it opens /dev/{name}", could(opened, "/dev/" + name, also=[errno.ENXIO, errno.ENODEV]))
                 for name in names)
    )

EXPECTED = {
    "/dev": {"null", "zero", "full", "random", "urandom"},
    "/etc": {"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime"},
    "/run": {"guest", "scratch"},
}
""",
    ),
)

_READ = """
def probe():
    return first((f"it reads {path}", content(path)) for path in PATHS)
"""


def _unreadable(name: str, title: str, paths: str, plain: OnPlain = OnPlain.BREAKS) -> Promise:
    none = f'"untried: there is none here" if not {paths} else '
    return Promise(
        name, title, Kind.READS, f"PATHS = {paths}\n" + _READ.replace("return ", f"return {none}"), plain
    )


READS = (
    _unreadable("solutions", "it cannot read the solutions", "SOLUTIONS"),
    _unreadable("problems", "it cannot read the problem files", "PROBLEMS"),
    _unreadable("grader", "it cannot read the grader", "GRADER"),
    _unreadable("private", "it cannot read the record of attempts", "PRIVATE"),
    _unreadable("temporary", "it cannot read files in the folder for temporary files", "[SECRET]"),
    _unreadable(
        "users",
        "it cannot read who the host's users are, nor their keys",
        '["/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/root/.ssh/authorized_keys"]',
    ),
    Promise(
        "home",
        "it cannot read the home folder",
        Kind.READS,
        """
def probe():
    if not HOME:
        return "untried: the home folder is empty or cannot be listed"
    return first((f"it reads {path}", listed(path) if os.path.isdir(path) else content(path)) for path in HOME)
""",
    ),
    Promise(
        "submission-beside",
        "it cannot read the files of a submission that runs beside it",
        Kind.READS,
        """
def probe():
    here = os.path.dirname(os.getcwd())
    folders = [os.path.join(TEMP, name) for name in listed(TEMP) if name.startswith("mhaquiz-")]
    for folder in [here, *folders]:
        for name in listed(folder):
            path = os.path.join(folder, name)
            if path != os.getcwd() and os.path.isdir(path) and "beside.py" in listed(path):
                return f"it finds {path}"
    return ""
""",
    ),
    Promise(
        "submission-before",
        "it finds nothing of an earlier submission in memory or in its scratch folder",
        Kind.READS,
        """
def probe():
    import torch
    if hasattr(torch, "mhaquiz_mark") or os.environ.get("MHAQUIZ_MARK"):
        return "a mark in the library is still there"
    above = os.path.dirname(os.getcwd())
    more = [name for name in listed(above) if name != os.path.basename(os.getcwd())]
    return f"{above} also holds {more}" if more else first(
        (f"{path} is still there", path.startswith(TOKEN)) for path in listed(os.getcwd()))
""",
        before="""
def probe():
    import torch
    torch.mhaquiz_mark = os.environ["MHAQUIZ_MARK"] = "1"
    for path in (TOKEN, "../" + TOKEN):
        got(opened, path, os.O_WRONLY | os.O_CREAT)
    return ""
""",
        left=lambda bait: ", ".join(bait.remove_files()),
        plain=OnPlain.HOLDS,
    ),
)

WRITES = (
    Promise(
        "files-outside",
        "it cannot make a file outside its scratch folder",
        Kind.WRITES,
        """
def probe():
    for folder in [*PLACES, "/", "/usr", "/etc", "/home"]:
        path = os.path.join(folder, TOKEN + "-made")
        if could(opened, path, os.O_WRONLY | os.O_CREAT):
            os.unlink(path)
            return f"it makes a file in {folder}"
        if could(os.mkdir, path):
            os.rmdir(path)
            return f"it makes a folder in {folder}"
        if could(os.symlink, "/", path):
            os.unlink(path)
            return f"it makes a link in {folder}"
    return ""
""",
    ),
    Promise(
        "programs",
        "it cannot change the library, the interpreter, the system or what runs beside it",
        Kind.WRITES,
        """
def probe():
    # Opened only: nothing is written.
    return first((f"it opens {path} to write", could(opened, path, os.O_WRONLY | os.O_APPEND, also=[errno.ETXTBSY]))
                 for path in [*PROGRAMS, SECRET])
""",
    ),
    Promise(
        "modes",
        "it cannot change the mode, owner, times or attributes of a file outside its scratch folder",
        Kind.WRITES,
        """
def probe():
    for path in [SECRET, FOLDER, *PROGRAMS]:
        there = got(os.stat, path)
        if there is None:
            continue
        tries = (
            ("mode", os.chmod, path, there.st_mode & 0o7777),
            ("times", os.utime, path),
            ("owner", os.chown, path, -1, there.st_gid),
        )
        # Of the bait in earnest; of real files only where that changes nothing.
        for what, action, *arguments in tries if path in (SECRET, FOLDER) else tries[:1]:
            if could(action, *arguments):
                return f"it changes the {what} of {path}"
        if path == SECRET and could(os.setxattr, path, b"user.mhaquiz", b"", also=[errno.ENOTSUP]):
            return f"it changes an attribute of {path}"
        file = got(os.open, path, os.O_RDONLY)
        if file is not None:
            try:
                if could(os.fchmod, file, there.st_mode & 0o7777):
                    return f"it changes the mode of {path}, opened to read"
            finally:
                os.close(file)
    return ""
""",
    ),
    Promise(
        "links",
        "it cannot take another's file into its scratch folder by a link",
        Kind.WRITES,
        """
def probe():
    for number, path in enumerate([*PROGRAMS, SECRET]):
        if could(os.link, path, f"taken{number}", also=[errno.EXDEV]):
            os.unlink(f"taken{number}")
            return f"it links {path}"
        os.symlink(path, f"named{number}")
        if could(opened, f"named{number}", os.O_WRONLY | os.O_APPEND, also=[errno.ETXTBSY]):
            return f"it opens {path} to write by a symbolic link"
    return ""
""",
    ),
    Promise(
        "removal",
        "it cannot rename or remove a file outside its scratch folder",
        Kind.WRITES,
        """
def probe():
    if could(os.rename, SECRET, SECRET + "-moved", also=[errno.EXDEV]):
        os.rename(SECRET + "-moved", SECRET)
        return f"it renames {SECRET}"
    if could(os.truncate, SECRET, os.path.getsize(SECRET) if os.path.exists(SECRET) else 0):
        return f"it truncates {SECRET}"
    return ""
""",
    ),
    Promise(
        "devices",
        "it cannot make a device",
        Kind.WRITES,
        """
def probe():
    return "it makes a device" if could(os.mknod, "device", 0o20600, os.makedev(1, 3)) else ""
""",
        OnPlain.VARIES,
    ),
)
PROMISES = (*SEES, *READS, *WRITES)
