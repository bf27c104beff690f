"""The one interface of every sandbox: how a zygote is started, and what its walls are called."""

from __future__ import annotations

import subprocess
from typing import Protocol


class Sandbox(Protocol):
    """A way to enclose the zygote and its runners."""

    name: str
    holds_strangers: bool
    """Whether it may run code of people that the user does not trust."""
    host_pids: bool
    """Whether the pids that the zygote names are those of the host."""

    def available(self) -> str | None:
        """None when it works on this host, else the reason and the remedy."""

    def start(self, script: str, control: int, scratch: str) -> subprocess.Popen[bytes]:
        """Starts the zygote script with the control descriptor inherited under its own number.

        `scratch` is the one folder in which the zygote may make folders for its runners.
        """
