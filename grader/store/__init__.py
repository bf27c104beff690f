"""What is remembered between runs: attempts and hints, in one SQLite file. No torch."""
