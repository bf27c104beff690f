"""The system calls that no submission may make, compiled once into a filter for every runner.

A list of what is refused, not of what is allowed: a library's kernels, threads and compilers use too much of the
rest. Refused calls answer EPERM, as if the user had no right to them.
"""

from __future__ import annotations

import errno
import socket
import tempfile
from functools import cache
from typing import Any

_REFUSED = (
    # Other processes: their memory, their registers, their descriptors.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_open",
    "pidfd_getfd", "pidfd_send_signal", "migrate_pages", "move_pages", "userfaultfd",
    # What is mounted, where the root is, and the namespaces beneath.
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
    "fspick", "mount_setattr", "unshare", "setns", "name_to_handle_at", "open_by_handle_at", "fanotify_init",
    "quotactl", "quotactl_fd", "swapon", "swapoff", "mknod", "mknodat",
    # The network, and sockets by a path. Pairs of connected streams stay, see below.
    "socket", "connect", "bind", "listen", "accept", "accept4", "sendmmsg", "recvmmsg",
    # Memory and messages that outlive a process, and memory that none maps.
    "shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop",
    "semctl", "mq_open", "mq_unlink", "memfd_create", "memfd_secret", "add_key", "request_key", "keyctl",
    # The kernel's own machinery.
    "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "init_module",
    "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog", "acct", "iopl", "ioperm",
    "modify_ldt", "personality", "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_adjtime",
    "adjtimex", "vhangup", "lookup_dcookie", "uselib", "sysfs", "nfsservctl", "landlock_create_ruleset",
)  # fmt: skip
# What a Landlock domain does not see: whose a file is, and what else is written about it. Where the mounts are not
# read-only, a submission could change these of every file of this user's.
_ABOUT_FILES = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
    "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr",
    "fremovexattr", "removexattrat", "file_setattr",
)  # fmt: skip
_FILE_FLAGS = (0x40086602, 0x401C5820)
# The calls that set something of a process, and which argument names it: of itself (0) it may.
_OF_PROCESSES = {
    "prlimit64": 0, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
    "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip
# mount, cgroup, time, uts, ipc, user, pid and net: the flags of clone that make a namespace.
_NEW_NAMESPACES = (0x20000, 0x2000000, 0x80, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
_SOCKET_KIND = 0xF
_TERMINAL_INPUT = (0x5412, 0x541C)


def missing() -> str | None:
    """Why no filter can be made here, with the remedy; None when one can."""
    try:
        compiled()
    except ImportError:
        return "the package pyseccomp is missing: python -m pip install 'mhaquiz[sandbox]'"
    except (OSError, RuntimeError, AttributeError, TypeError) as error:
        return (
            f"no filter of system calls can be made ({error}): install libseccomp (apt install libseccomp2)"
        )
    return None


@cache
def compiled(about_files: bool = False) -> bytes:
    """The filter as the kernel takes it; with `about_files` it refuses to change what is written about a file, too.

    Raises ImportError without pyseccomp, RuntimeError without libseccomp.
    """
    import pyseccomp as seccomp

    refuse = seccomp.ERRNO(errno.EPERM)
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in (*_REFUSED, *(_ABOUT_FILES if about_files else ())):
        _add(rules, refuse, name)
    for request in _FILE_FLAGS if about_files else ():
        _add(rules, refuse, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    for name, place in _OF_PROCESSES.items():
        _add(rules, refuse, name, seccomp.Arg(place, seccomp.NE, 0))
    # Of all processes of a group or a user, 0 is the own one.
    _add(rules, refuse, "setpriority", seccomp.Arg(0, seccomp.NE, 0))
    _add(rules, refuse, "ioprio_set", seccomp.Arg(0, seccomp.NE, 1))
    for flag in _NEW_NAMESPACES:
        _add(rules, refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # Its flags lie in memory, where no filter looks: callers fall back to clone.
    _add(rules, seccomp.ERRNO(errno.ENOSYS), "clone3")
    # A datagram socket can be sent to any path; a connected stream only to its other end.
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        _add(rules, refuse, "socketpair", seccomp.Arg(1, seccomp.MASKED_EQ, _SOCKET_KIND, kind))
    _add(rules, refuse, "socketpair", seccomp.Arg(0, seccomp.NE, socket.AF_UNIX))
    for request in _TERMINAL_INPUT:
        _add(rules, refuse, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _add(rules: Any, action: int, name: str, *conditions: Any) -> None:
    """Adds a rule; a call that this library or machine does not have cannot be made either."""
    try:
        rules.add_rule(action, name, *conditions)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EDOM):
            raise
    except ValueError:
        return
