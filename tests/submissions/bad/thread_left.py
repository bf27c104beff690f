import threading
import time


def split_heads(x, num_heads):
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("not divisible")
    return x.unflatten(-1, (num_heads, d_model // num_heads)).transpose(1, 2)
