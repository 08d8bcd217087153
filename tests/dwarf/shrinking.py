"""Files that shrink while wick has them mapped: an error that names the file, never a signal. A library that is loaded into wick (shrink.c) cuts a
file in the moment in which it is mapped, by wick or by libelf."""
import os
import shutil

from common import ENV, PROGRAMS, WICK, WORK, build, record, run, say

FLAGS = "-O2 -fomit-frame-pointer"
# How each kind of file is made, in the shell, and which is cut.
KINDS = {
    "recording": ("gcc {flags} -g {source} -pthread -o {program}", "{data}"),
    "program": ("gcc {flags} -g {source} -pthread -o {program}", "{program}"),
    "debug": ("gcc {flags} -g {source} -pthread -o {program} && objcopy --only-keep-debug {program} {program}.debug"
              " && objcopy --strip-debug --add-gnu-debuglink={program}.debug {program}", "{program}.debug"),
    "dwo": ("gcc {flags} -g -gsplit-dwarf -c {source} -o chain.o && gcc chain.o -pthread -o {program}", "chain.dwo"),
    "dwz": ("gcc {flags} -g {source} -pthread -o {program} && gcc {flags} -g -DWITHOUT_QSORT {source} -pthread -o other"
            " && dwz -m {folder}/common -M {folder}/common {program} other", "common"),
    "perf-map": ("gcc {flags} -g {programs}/jit.c -o {program}", None),
}


def cut(library, name, size, *command):
    env = dict(ENV, LD_PRELOAD=library, SHRINK=name, SHRINK_TO=str(size))
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return run([WICK, *command], env)


def why_not(done, path):
    said = done.stderr.decode(errors="replace")
    if done.returncode != 1:
        return f"status {done.returncode}: {said[-200:]}"
    name = ".dwo" if path.endswith(".dwo") else os.path.basename(path)
    return None if "changed while reading" in said and name in said else said[-200:]


def check_kind(name, library, folder):
    recipe, which = KINDS[name]
    program, output = os.path.join(folder, "shrinks"), os.path.join(folder, "output")
    words = dict(flags=FLAGS, source=f"{PROGRAMS}/chain.c", program=program, programs=PROGRAMS, folder=folder)
    done = run(["sh", "-c", f"cd {folder} && " + recipe.format(**words)], os.environ)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace")[-300:])
    data = record(program, folder, "100")
    if which == "{data}":
        path = data
    elif which:
        path = os.path.join(folder, which.format(**words))
    else:
        path = next(word for word in run([WICK, "script", data]).stdout.decode().split() if "/tmp/perf-" in word).strip("()")
    shutil.copy(path, path + ".kept")
    size = os.path.getsize(path)
    # What is gone may not be needed where part of it is left, but nothing ends by a signal.
    for part in (0, size // 2, 4096):
        for command in (["fold", "--srcline"], ["script", "--compat=perf"]):
            done = cut(library, path, min(part, size - 1), *command, "--no-sandbox", "-o", output, data)  # inside it nothing can be cut
            shutil.copy(path + ".kept", path)
            needed = part == 0 and command[0] == "fold"
            is_left = done.returncode == 1 and os.path.exists(output)
            if os.path.exists(output):
                os.unlink(output)
            if done.returncode not in (0, 1) or is_left or (needed and why_not(done, path)):
                say(f"shrinking/{name}", f"{' '.join(command)}, {part} of {size} bytes left: {why_not(done, path)}")
                return
    if not which:
        os.unlink(path)
    os.unlink(path + ".kept")
    say(f"shrinking/{name}")


def check_shrinking():
    folder = os.path.join(WORK, "shrinking")
    os.makedirs(folder, exist_ok=True)
    library = build("shrink.so", f"gcc -shared -fPIC -O2 {PROGRAMS}/shrink.c", folder)
    if not library:
        print("skip shrinking: gcc is not installed", flush=True)
        return
    for name in KINDS:
        if name == "dwz" and not shutil.which("dwz"):
            print("skip shrinking/dwz: dwz is not installed", flush=True)
        else:
            check_kind(name, library, folder)
