"""The one interface of every sandbox: how a zygote is enclosed, and what its runners do to themselves."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Enclosed:
    """A started zygote. Folders are named as its submissions see them."""

    process: subprocess.Popen[bytes]
    guest: str
    """The folder of the code that runs beside a submission."""
    scratch: str
    """The one folder in which the zygote may make folders for its runners."""
    on_host: str | None
    """That folder on the host, to be removed in the end; None when it goes with the zygote."""


class Sandbox(Protocol):
    """A way to enclose the zygote and its runners."""

    name: str
    holds_strangers: bool
    """Whether it may run code of people that the user does not trust."""
    host_pids: bool
    """Whether the zygote counts processes as the host does."""

    def available(self) -> str | None:
        """None when it works on this host, else the reason and the remedy."""

    def start(self, control: int) -> Enclosed:
        """Starts the zygote with the control descriptor inherited under its own number."""
