"""Says whether two texts are the same, and where they first differ."""
import os
import sys

WORK = os.environ.get("WORK", "")


def first_difference(expected, got):
    expected, got = expected.split(b"\n"), got.split(b"\n")
    for number, (left, right) in enumerate(zip(expected, got), 1):
        if left != right:
            return number, left, right
    number = min(len(expected), len(got))
    return number + 1, b"\n".join(expected[number:number + 1]), b"\n".join(got[number:number + 1])


def count_differences(expected, got):
    expected, got = expected.split(b"\n"), got.split(b"\n")
    return abs(len(expected) - len(got)) + sum(left != right for left, right in zip(expected, got))


def report(name, expected_path, result):
    """Prints ok or FAIL for wick's (output, why) against the text at a path. What differs is kept in WORK."""
    got, why = result
    with open(expected_path, "rb") as file:
        expected = file.read()
    if why:
        print(f"FAIL {name}: {why}", flush=True)
    elif got == expected:
        print(f"ok {name}", flush=True)
    else:
        number, left, right = first_difference(expected, got)
        text = lambda line: line.decode(errors="backslashreplace")[:300]
        print(f"    line {number}\n    expected: {text(left)}\n    got:      {text(right)}", file=sys.stderr)
        if WORK:
            base = os.path.join(WORK, name.replace("/", "-"))
            for suffix, content in ((".expected", expected), (".got", got)):
                with open(base + suffix, "wb") as file:
                    file.write(content)
        print(f"FAIL {name}: differs from line {number} on, in {count_differences(expected, got)} lines", flush=True)
