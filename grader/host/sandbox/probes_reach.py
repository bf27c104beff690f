"""The promises about other processes, the network and the kernel, each with the probe that tries. See probes.py."""

from __future__ import annotations

from grader.host.sandbox.bait import Bait
from grader.host.sandbox.promise import Kind, OnPlain, Promise


def _killed(bait: Bait) -> str:
    return "the process was ended" if bait.revive() else ""


_PROCESSES = (
    Promise(
        "signals",
        "it cannot signal the grader, the host or another submission",
        Kind.REACHES,
        """
def probe():
    # Neither disturbs a process that runs.
    return first((f"it signals process {pid}", could(os.kill, pid, number))
                 for pid in others() for number in (0, signal.SIGCONT))
""",
    ),
    Promise(
        "signals-by-file",
        "it cannot have the kernel signal another process when a file is ready",
        Kind.REACHES,
        """
def probe():
    reading, writing = os.pipe()
    if could(fcntl.fcntl, reading, fcntl.F_SETOWN, BAIT):
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(writing, b"x")
        time.sleep(0.05)
    return ""
""",
        left=_killed,
    ),
    Promise(
        "limits-of-others",
        "it cannot change another process's limits, priority or processors",
        Kind.REACHES,
        """
def probe():
    for pid in others():
        if could(resource.prlimit, pid, resource.RLIMIT_CORE):
            return f"it reaches the limits of process {pid}"
    # What is set is what there was.
    pid = BAIT
    nice = got(os.getpriority, os.PRIO_PROCESS, pid)
    processors = got(os.sched_getaffinity, pid)
    policy = got(os.sched_getscheduler, pid)
    if nice is not None and could(os.setpriority, os.PRIO_PROCESS, pid, nice):
        return f"it sets the priority of process {pid}"
    if processors and could(os.sched_setaffinity, pid, processors):
        return f"it sets the processors of process {pid}"
    if policy is not None and could(os.sched_setscheduler, pid, policy, os.sched_param(0)):
        return f"it sets the scheduling of process {pid}"
    if KNOWN and libc.syscall(ctypes.c_long(KNOWN["ioprio_set"]), 1, pid, 2 << 13 | 4) == 0:
        return f"it sets how process {pid} reaches the disk"
    return ""
""",
    ),
    Promise(
        "tracing",
        "it cannot trace a process or take its descriptors",
        Kind.REACHES,
        """
def probe():
    seize = 0x4206
    tries = [(f"it traces process {pid}", libc.ptrace(seize, pid, None, None) == 0) for pid in others()]
    tries += [("the kernel takes up ptrace", in_child(lambda: reached("ptrace", -1, 0, None, None)))]
    if KNOWN:
        tries += [(f"the kernel takes up {name}", called(name, -1, 0, 0, 0, 0)) for name in ("pidfd_open", "kcmp")]
    return first(tries)
""",
        OnPlain.VARIES,
    ),
)
_NETWORK = (
    Promise(
        "network-tcp",
        "it reaches nothing over TCP",
        Kind.REACHES,
        """
def probe():
    if could(connected, socket.AF_INET, ("127.0.0.1", TCP), also=UNREACHED):
        return f"it connects to port {TCP} of the host"
    def serves():
        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
            made.listen()
    return "it listens on a port" if could(serves, also=UNREACHED) else ""
""",
    ),
    Promise(
        "network-udp",
        "it sends nothing over UDP",
        Kind.REACHES,
        """
def probe():
    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.sendto(b"x", ("127.0.0.1", UDP))
    return f"it sends to port {UDP} of the host" if could(send, also=UNREACHED) else ""
""",
    ),
    Promise(
        "sockets-by-path",
        "it reaches no socket of the host by a path",
        Kind.REACHES,
        """
def probe():
    if could(connected, socket.AF_UNIX, STREAM, also=UNREACHED):
        return f"it connects to {STREAM}"
    if could(connected, socket.AF_UNIX, DATAGRAM, socket.SOCK_DGRAM, also=UNREACHED):
        return f"it connects to {DATAGRAM}"
    def pairs():
        # A pair is made without a word to the host, yet each end can send to any path.
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with one, other:
            one.sendto(b"x", DATAGRAM)
    return f"it sends from a pair to {DATAGRAM}" if could(pairs, also=UNREACHED) else ""
""",
    ),
    Promise(
        "sockets-by-name",
        "it reaches no socket of the host by an abstract name",
        Kind.REACHES,
        """
def probe():
    if not ABSTRACT:
        return "untried: this system has no abstract names"
    if could(connected, socket.AF_UNIX, ABSTRACT, also=UNREACHED):
        return "it connects to an abstract socket"
    def names():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.bind("\\0" + TOKEN + "-own")
    return "it takes an abstract name" if could(names) else ""
""",
    ),
    Promise(
        "sockets-of-any-kind",
        "it opens no socket to the kernel, the hardware or a virtual machine's host",
        Kind.REACHES,
        """
def probe():
    kinds = {
        "netlink": (16, socket.SOCK_RAW), "packet": (17, socket.SOCK_RAW), "raw": (socket.AF_INET, socket.SOCK_RAW),
        "vsock": (40, socket.SOCK_STREAM), "alg": (38, socket.SOCK_SEQPACKET), "inet6": (10, socket.SOCK_STREAM),
        "seqpacket": (socket.AF_UNIX, socket.SOCK_SEQPACKET),
    }
    return first((f"it opens a socket of kind {name}", could(lambda: socket.socket(*kind).close(), also=UNKNOWN))
                 for name, kind in kinds.items())
""",
    ),
)
_KERNEL = (
    Promise(
        "namespaces",
        "it cannot make or enter namespaces",
        Kind.REACHES,
        """
def probe():
    def cloned():
        new_user = 0x10000000
        answer = libc.syscall(ctypes.c_long(KNOWN["clone"]), new_user | signal.SIGCHLD, None, None, None, None)
        if answer == 0:
            os._exit(0)
        return answer > 0
    tries = [
        ("it makes a user namespace", in_child(lambda: libc.unshare(0x10000000) == 0)),
        ("the kernel takes up unshare", in_child(lambda: reached("unshare", 0))),
        ("the kernel takes up setns", reached("setns", -1, 0)),
    ]
    if KNOWN:
        tries += [
            ("clone makes a user namespace", in_child(cloned)),
            ("the kernel takes up clone3", called("clone3", None, 0)),
        ]
    return first(tries)
""",
        OnPlain.VARIES,
    ),
    Promise(
        "mounts",
        "it cannot mount, unmount or change its root",
        Kind.REACHES,
        """
def mounts_here():
    # By its whole name: the folder that this process is in lies beneath the mount. Nothing is left of it.
    here = os.getcwd().encode()
    done = libc.mount(b"none", here, b"tmpfs", ctypes.c_ulong(0), None) == 0
    return done and libc.umount2(here, 2) == 0

def probe():
    nowhere = b"/no-such-folder-here"
    return first([
        ("the kernel takes up mount", reached("mount", b"none", nowhere, b"tmpfs", ctypes.c_ulong(0), None)),
        ("the kernel takes up umount", reached("umount2", nowhere, 0)),
        ("the kernel takes up chroot", reached("chroot", nowhere)),
        ("it mounts over its folder", mounts_here()),
    ])
""",
        OnPlain.VARIES,
    ),
    Promise(
        "kernel",
        "it cannot use the kernel's own machinery: programs, rings, counters, page faults, keys",
        Kind.REACHES,
        """
def probe():
    if not KNOWN:
        return f"untried: the numbers of the calls on {platform.machine()} are not known here"
    names = ("bpf", "io_uring_setup", "userfaultfd", "perf_event_open", "keyctl", "add_key")
    return first((f"the kernel takes up {name}", called(name, -1, None, -1, -1, -1)) for name in names)
""",
        OnPlain.VARIES,
    ),
    Promise(
        "calls-of-another-kind",
        "it cannot get past the filter by calls of another kind of processor",
        Kind.REACHES,
        """
def probe():
    if platform.machine() != "x86_64":
        return "untried: this processor has only one kind"
    import mmap
    def old():
        # push rbx; eax = 359 (socket), ebx = AF_UNIX, ecx = SOCK_STREAM, edx = 0; int 0x80; pop rbx; ret
        code = bytes.fromhex("53 b867010000 bb01000000 b901000000 31d2 cd80 5b c3")
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return ctypes.CFUNCTYPE(ctypes.c_int)(start)() >= 0
    def narrow():
        return libc.syscall(ctypes.c_long(0x40000000 + 41), socket.AF_UNIX, socket.SOCK_STREAM, 0) >= 0
    return first([
        ("a 32-bit call makes a socket", in_child(old)),
        ("a call of the x32 kind makes a socket", in_child(narrow)),
    ])
""",
        OnPlain.VARIES,
    ),
    Promise(
        "hidden-memory",
        "it cannot fill memory that no limit sees, nor share it with others",
        Kind.REACHES,
        """
def probe():
    if could(lambda: os.close(os.memfd_create("mhaquiz"))):
        return "it makes memory that is a file without a name"
    segment = libc.shmget(KEY, 4096, 0o1600)
    if segment != -1:
        return "it makes System V shared memory"
    if reached("msgget", KEY, 0) or reached("semget", KEY, 1, 0):
        return "the kernel takes up System V messages and semaphores"
    return "the kernel takes up mq_open" if reached("mq_open", b"/no-such-queue", os.O_RDONLY) else ""
""",
        left=lambda bait: "System V shared memory is left" if bait.remove_segment() else "",
    ),
    Promise(
        "privileges",
        "it has no privilege, and gains none by a program that runs as another user",
        Kind.REACHES,
        """
def probe():
    get_no_new_privileges, ambient, is_set = 39, 47, 1
    if libc.prctl(get_no_new_privileges, 0, 0, 0, 0) != 1:
        return "a program that runs as another user gives it that user's rights"
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    # Effective, permitted, inheritable; twice, for 64 of them.
    if any(sets):
        return f"it has privileges: {', '.join(format(part, '08x') for part in sets)}"
    raised = [number for number in range(64) if libc.prctl(ambient, is_set, number, 0, 0) == 1]
    if raised:
        return f"it has ambient privileges {raised}"
    # A program that it starts could be given what it has not itself.
    code = "import ctypes; h = (ctypes.c_uint32 * 2)(0x20080522, 0); s = (ctypes.c_uint32 * 6)(); "
    code += "assert ctypes.CDLL(None).capget(h, s) == 0; print(any(s))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return "" if done.stdout == "False\\n" else "a program that it starts has privileges"
""",
    ),
    Promise(
        "user",
        "it cannot become another user",
        Kind.REACHES,
        """
def probe():
    other = 12345 if os.getuid() != 12345 else 12346
    tries = {"user": os.setuid, "group": os.setgid}
    return first((f"it changes its {name}", in_child(lambda: could(change, other, also=[errno.EINVAL])))
                 for name, change in tries.items())
""",
        OnPlain.VARIES,
    ),
)
PROMISES = (*_PROCESSES, *_NETWORK, *_KERNEL)
