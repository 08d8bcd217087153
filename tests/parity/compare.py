"""Says whether two texts are the same, and where they first differ; and of stacks that both unwound, whether those that perf brought to an end are."""
import os
import sys

WORK = os.environ.get("WORK", "")


# Where a process or thread starts.
STARTS = {"_start", "clone3", "__clone3", "__clone", "clone", "__GI___clone3", "thread_start"}


def reaches_start(block):
    """Whether the stack of a sample, as script text, goes to where its thread started."""
    words = block.strip().split(b"\n")[-1].split()
    return len(words) > 1 and words[1].decode(errors="replace").split("+")[0].split("@")[0] in STARTS


def unwound_otherwise(theirs, ours):
    """(the samples whose stacks perf breaks off or makes up, so that they differ from wick's; those that differ although perf's is whole) of two
    script texts. See "on stacks that have to be unwound" in docs/differences.md."""
    theirs, ours = theirs.split(b"\n\n"), ours.split(b"\n\n")
    different = [(left, right) for left, right in zip(theirs, ours) if left != right]
    wrong = [pair for pair in different if reaches_start(pair[0]) or pair[0].split(b"\n")[0] != pair[1].split(b"\n")[0]]
    if len(theirs) != len(ours):
        wrong.append((b"%d samples" % len(theirs), b"%d samples" % len(ours)))
    return [left for left, right in different if (left, right) not in wrong], wrong


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
