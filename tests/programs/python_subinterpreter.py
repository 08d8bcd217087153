"""usage: python_subinterpreter.py SECONDS: spins in a second interpreter of the same process."""
import sys

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

PROGRAM = """
import time
def inner_work():
    end, number = time.process_time() + %s, 0
    while time.process_time() < end:
        for i in range(10000):
            number += i
inner_work()
"""


def outer_work():
    other = interpreters.create()
    interpreters.run_string(other, PROGRAM % sys.argv[1])
    interpreters.destroy(other)


outer_work()
