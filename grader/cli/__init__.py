"""The commands, one module each. Importing any of them imports no torch."""
