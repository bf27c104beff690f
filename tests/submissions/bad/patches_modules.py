import sys

for name in list(sys.modules):
    sys.modules[name] = None


def split_heads(x, num_heads):
    return x
