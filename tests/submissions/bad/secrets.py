import os

if sorted(os.listdir()) != [os.path.basename(__file__)]:
    raise RuntimeError(f"the folder holds {os.listdir()}")
found = [name for name in os.environ if any(part in name.upper() for part in ("TOKEN", "SECRET", "KEY", "PASSWORD"))]
if found:
    raise RuntimeError(f"the environment holds {found}")
if os.environ["HOME"] != os.getcwd():
    raise RuntimeError("the home folder is the user's own")


def split_heads(x, num_heads):
    for number in range(4, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        raise RuntimeError(f"descriptor {number} is open")
    raise LookupError("nothing to find")
