import json
import os
import struct

text = json.dumps({"loaded": False, "failure": {"code": "raised", "frames": 7, "line": {}, "type": [], "names": 3}}).encode()
os.write(3, struct.pack(">II", len(text), 0) + text)


def split_heads(x, num_heads):
    return x
