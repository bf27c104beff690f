class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def split_heads(x, num_heads):
    raise Odd
