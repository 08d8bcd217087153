"""usage: python_deep.py DEPTH SECONDS: recurses to DEPTH and computes there for SECONDS."""
import sys
import threading
import time


def bottom(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2000))


def down(depth, seconds):
    if depth == 0:
        bottom(seconds)
    else:
        down(depth - 1, seconds)


sys.setrecursionlimit(int(sys.argv[1]) + 1000)
threading.stack_size(512 << 20)
thread = threading.Thread(target=down, args=(int(sys.argv[1]), float(sys.argv[2])))
thread.start()
thread.join()
