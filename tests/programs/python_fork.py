"""usage: python_fork.py SECONDS: two children, made without an exec, compute for SECONDS each; the parent waits."""
import os
import sys
import time


def child_work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(3000))


children = []
for _ in range(2):
    pid = os.fork()
    if not pid:
        child_work(float(sys.argv[1]))
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
