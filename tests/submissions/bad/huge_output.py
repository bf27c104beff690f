def split_heads(x, num_heads):
    while True:
        print('x' * 65536)
