# Kopfzähler
def split_heads(x, num_heads):
    return x
