"""usage: python_truth.py SECONDS [THREADS]

Spends SECONDS of CPU time in each of THREADS threads (2 unless told), in functions of several kinds, and prints for each kind what it cost by the thread's own
clock. For CPython 3.8 and later.
"""
import asyncio
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 60
spent = {}
lock = threading.Lock()


def kind_loop():
    total = 0
    for i in range(9000):
        total += i * i
    return total


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def kind_calls():
    return fib(14)


def kind_extension():
    return zlib.compress(DATA * 3, 9)


def key_of(number):
    return (number * 7919) % 1009


def kind_callback():
    return sorted(range(1500), key=key_of)


def numbers(count):
    for i in range(count):
        yield i * 2


def kind_generator():
    return sum(numbers(8000))


def down(depth):
    if depth:
        return down(depth - 1)
    return sum(range(12000))


def kind_deep():
    return down(20)


class Worker:
    async def step(self, count):
        total = 0
        for i in range(count):
            total += i
        return total

    async def steps(self):
        return await self.step(9000) + await self.step(3000)


def kind_coroutine():
    return loop_of_thread.loop.run_until_complete(Worker().steps())


loop_of_thread = threading.local()
KINDS = [kind_loop, kind_calls, kind_extension, kind_callback, kind_generator, kind_deep, kind_coroutine]


def work(seconds):
    loop_of_thread.loop = asyncio.new_event_loop()
    mine = dict.fromkeys(KINDS, 0)
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for kind in KINDS:
            began = time.thread_time_ns()
            kind()
            mine[kind] += time.thread_time_ns() - began
    loop_of_thread.loop.close()
    with lock:
        for kind, cost in mine.items():
            spent[kind] = spent.get(kind, 0) + cost


def main():
    seconds, count = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    others = [threading.Thread(target=work, args=(seconds,)) for _ in range(count - 1)]
    for other in others:
        other.start()
    work(seconds)
    for other in others:
        other.join()
    for kind, cost in spent.items():
        print(kind.__name__, cost)


if __name__ == "__main__":
    main()
