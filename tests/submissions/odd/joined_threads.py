import threading


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    box = []
    worker = threading.Thread(target=lambda: box.append(x.unflatten(-1, (num_heads, -1)).transpose(1, 2)))
    worker.start()
    worker.join()
    return box[0]
