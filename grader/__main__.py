"""`python -m grader` is the same command as `mhaquiz`."""

from __future__ import annotations

from grader.cli.main import main

if __name__ == "__main__":
    main()
