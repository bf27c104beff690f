import time


def split_heads(x, num_heads):
    time.sleep(3600)
