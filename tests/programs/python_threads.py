"""usage: python_threads.py SECONDS

Computes for SECONDS in three threads of the program's: one that Python names, one with a name of its own, and one of a class with
attributes, whose name is longer than the kernel's may be. For CPython 3.8 and later.
"""
import sys
import threading
import time


def work():
    end = time.thread_time() + float(sys.argv[1])
    while time.thread_time() < end:
        sum(range(2000))


class Worker(threading.Thread):
    def __init__(self):
        super().__init__(name="größer-als-fünfzehn-Zeichen")
        self.colour, self.size = "green", 3
        vars(self)["another"] = 4  # makes its attributes a dictionary of its own

    def run(self):
        work()


threads = [threading.Thread(target=work), threading.Thread(target=work, name="reader"), Worker()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
