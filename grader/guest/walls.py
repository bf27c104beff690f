"""What a runner does to itself so that it sees, reads and reaches nothing but its own: the inner walls.

Which of them are raised is the host's choice (grader/host/sandbox). In this order, since each step forbids the one
before: namespaces of its own (only under a zygote that may make them), a Landlock domain, no privileges, and last
the filter of system calls, which forbids new namespaces, mounts and sockets.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from typing import Any

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 0x1, 0x2, 0x4, 0x4000, 0x40000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_CAPABILITY_VERSION_3 = 0x20080522
_OF_ITSELF = ("auxv", "cmdline", "comm", "environ", "fd", "maps", "smaps", "stat", "statm", "status")
_EMPTY = "mode=555,size=4k,nr_inodes=2"
_libc = ctypes.CDLL(None, use_errno=True)


def prepare(walls: dict[str, Any]) -> None:
    """In the zygote, once: imports what the walls of its runners need."""
    if walls.get("landlock"):
        import sandlock  # noqa: F401


@contextlib.contextmanager
def own_processes(walls: dict[str, Any]) -> Iterator[None]:
    """In the zygote, around a fork: the child starts a family of processes that sees no other.

    The child is its init: when it ends, the kernel ends everything that it started.
    """
    if not walls.get("namespaces"):
        yield
        return
    home = os.open("/proc/self/ns/pid_for_children", os.O_RDONLY | os.O_CLOEXEC)
    parent = os.getpid()
    try:
        _call(_libc.unshare, _CLONE_NEWPID)
        yield
    finally:
        if os.getpid() == parent:
            _call(_libc.setns, home, _CLONE_NEWPID)
        os.close(home)


def enclose(walls: dict[str, Any], limits: dict[str, Any], scratch: str) -> None:
    """In the fork: raises every wall asked for. Raises OSError when one cannot be raised."""
    if walls.get("namespaces"):
        _own_namespaces(limits, scratch)
    if walls.get("landlock"):
        _own_domain(walls["landlock"], scratch)
        # A host that runs as root would hand on everything that root may.
        _drop_capabilities()
    if walls.get("filter"):
        _filter_calls(bytes.fromhex(walls["filter"]))


def _own_namespaces(limits: dict[str, Any], scratch: str) -> None:
    """Users, mounts and shared memory of its own: a sized scratch folder, and no more of the zygote than its files."""
    user, group = os.getuid(), os.getgid()
    _call(_libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)
    # Over the folder of all runners' scratch folders: this one's alone is there.
    above = os.path.dirname(scratch)
    size = f"size={int(limits['scratch_bytes'])},nr_inodes={int(limits['scratch_files'])},mode=755"
    _mount("tmpfs", above, "tmpfs", _MS_NOSUID | _MS_NODEV, size)
    os.mkdir(scratch, 0o700)
    _mount("tmpfs", "/proc", "tmpfs", _MS_RDONLY, _EMPTY)
    _drop_capabilities()


def _own_domain(rules: dict[str, Any], scratch: str) -> None:
    """Files by a list; no signal, trace or abstract socket beyond the processes that it starts itself."""
    import sandlock

    # /proc/self is this process's own folder, as the name means it now. Not all of it: its network is the host's.
    own = [f"/proc/self/{name}" for name in _OF_ITSELF]
    readable = [path for path in [*rules["readable"], *own] if os.path.exists(path)]
    writable = [path for path in [*rules["writable"], scratch] if os.path.exists(path)]
    sandlock.confine(sandlock.Sandbox(fs_readable=readable, fs_writable=writable))


def _drop_capabilities() -> None:
    """A process that made its own user namespace, or that was forked by root, may do everything until now."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    _call(_libc.capset, header, none)


def _filter_calls(program: bytes) -> None:
    """The host's compiled filter, for this process and everything that it starts. Needs no privilege."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    _call(_libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filled = Program(len(program) // 8, program)
    _call(_libc.prctl, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filled), 0, 0)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _call(_libc.mount, texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _call(function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function.__name__}: {os.strerror(number)}")
