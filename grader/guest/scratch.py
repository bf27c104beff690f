"""Removes a scratch folder, whatever a submission left in it: deep nesting, locked folders, links."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess


def remove(folder: str) -> None:
    """Removes the folder. Follows no link; a file that even its owner may not remove stays."""
    # rmtree calls itself for every level and gives up on folders that it may not enter; the commands do neither.
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.islink(folder):
        # Put in the folder's place: what it points to is none of ours.
        os.unlink(folder)
    if not os.path.lexists(folder):
        return
    for command in (["chmod", "-R", "u+rwx", "--", folder], ["rm", "-rf", "--", folder]):
        with contextlib.suppress(OSError):
            subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
