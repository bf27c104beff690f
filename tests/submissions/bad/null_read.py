import ctypes


def split_heads(x, num_heads):
    ctypes.string_at(0)
