"""No walls, only limits: for a learner's own code. Named `plain` in every report."""

from __future__ import annotations

import os
import tempfile

from grader.host.sandbox.base import Enclosed
from grader.host.sandbox.interpreter import GUEST, python, started


class Plain:
    """Starts the zygote as an ordinary child process in a session of its own."""

    name = "plain"
    holds_strangers = False
    host_pids = True

    def available(self) -> str | None:
        """Needs fork, so Linux or macOS."""
        if hasattr(os, "fork"):
            return None
        return "this system cannot fork; run mhaquiz on Linux, macOS or in WSL"

    def start(self, control: int) -> Enclosed:
        """The interpreter without the user's settings and without the current folder on the import path."""
        scratch = tempfile.mkdtemp(prefix="mhaquiz-")
        process = started(python(GUEST, control, scratch, {}), control)
        return Enclosed(process, str(GUEST), scratch, scratch)
