"""usage: python_made.py SECONDS: compiles small programs and runs them, over and over."""
import sys
import time

TEXT = "def inner_%d(k):\n    return sum(range(k))\nfor i in range(60):\n    inner_%d(i * 20)\n"
TEXTS = [TEXT % (i, i) + "\n" * i for i in range(7)]


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for i, text in enumerate(TEXTS):
            exec(compile(text, f"<made {i}>", "exec"), {})


work(float(sys.argv[1]))
