"""What the parts of this group share."""
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", os.path.abspath(os.path.join(HERE, "../../build")))
WICK = os.environ.get("WICK", os.path.join(BUILD, "wick"))
WORK = os.environ.get("WORK", os.path.join(BUILD, "work/profile"))


def say(good, name, why=""):
    print(f"ok {name}" if good else f"FAIL {name}: {why}".replace("\n", " | "), flush=True)


def wick(*words, before=()):
    return subprocess.run([*before, WICK, *words], cwd=WORK, capture_output=True, text=True, errors="replace")


def place(*parts):
    return os.path.join(WORK, "wick-out", *parts)


def content(*parts):
    with open(place(*parts), encoding="utf-8") as file:
        return file.read()


def run_json(name):
    return json.loads(content(name, "run.json"))
