import faulthandler
import sys
import traceback


def split_heads(x, num_heads):
    sys.stdout.flush()
    faulthandler.dump_traceback(all_threads=False)
    traceback.print_stack()
    raise ValueError("see above")
