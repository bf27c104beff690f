"""Where the state of this user lies. Nothing here creates a folder or opens a file."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "MHAQUIZ_HOME"
DATABASE = "mhaquiz.db"


def state_folder() -> Path:
    """`MHAQUIZ_HOME` when it is set, else the user's data folder of this operating system."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path  # only when needed: most of what it costs is its import

    return user_data_path("mhaquiz", appauthor=False)


def database_path() -> Path:
    """The file that holds attempts and hints."""
    return state_folder() / DATABASE
