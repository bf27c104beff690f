"""The version, as installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("mhaquiz")
except PackageNotFoundError:  # a checkout that was never installed
    VERSION = "0.1.0"
