"""usage: python_waits.py SECONDS: threads that wait in different ways, each in a function of its own; two compete for the interpreter's lock."""
import os
import sys
import threading
import time

END = time.monotonic() + float(sys.argv[1])


def sleeps_short():
    while time.monotonic() < END:
        time.sleep(0.01)


def sleeps_long():
    while time.monotonic() < END:
        time.sleep(0.04)


def waits_for_lock(lock):
    while time.monotonic() < END:
        with lock:
            pass
        time.sleep(0.001)


def holds_lock(lock):
    while time.monotonic() < END:
        with lock:
            time.sleep(0.02)


def reads_pipe(pipe):
    while os.read(pipe, 1) != b"e":
        pass


def writes_pipe(pipe):
    while time.monotonic() < END:
        time.sleep(0.02)
        os.write(pipe, b"x")
    os.write(pipe, b"e")


def computes():
    number = 0
    while time.monotonic() < END:
        for i in range(20000):
            number += i * i
    return number


def main():
    lock = threading.Lock()
    reader, writer = os.pipe()
    work = [(sleeps_short,), (sleeps_long,), (waits_for_lock, lock), (holds_lock, lock), (reads_pipe, reader), (writes_pipe, writer), (computes,), (computes,)]
    threads = [threading.Thread(target=item[0], args=item[1:], name=item[0].__name__) for item in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
