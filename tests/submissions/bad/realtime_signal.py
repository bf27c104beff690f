import os


def split_heads(x, num_heads):
    os.kill(os.getpid(), 40)
