"""Programs of other C libraries than glibc on the built-in engine, compared with QEMU: picolibc, newlib and musl. Debian has picolibc for
RISC-V of 64 and 32 bits, but neither of the others. newlib is built from the package newlib-source under --long; WICK_NEWLIB and WICK_MUSL
name folders that build-library made."""
import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CC = "riscv64-linux-gnu-gcc"
DATA = b"the quick brown fox\njumps over the lazy dog\n" * 20


def newlib(build):
    """Where it is, or None with the reason said."""
    given = os.environ.get("WICK_NEWLIB")
    if given:
        return given
    directory, sources = os.path.join(build, "newlib"), glob.glob("/usr/src/newlib/newlib-*.tar.xz")
    ready = os.path.join(directory, "riscv64-unknown-elf/lib/libgloss.a")
    if os.path.exists(ready):
        return directory
    if not os.environ.get("LONG"):
        print("skip newlib: WICK_NEWLIB names no copy of it; --long builds one")
    elif not sources or not shutil.which("make"):
        print("skip newlib: the package newlib-source is not installed, or make is not")
    else:
        with open(os.path.join(build, "newlib.log"), "w") as log:
            subprocess.run([f"{HERE}/build-library", "newlib", sources[0], directory], stdout=log, stderr=log)
        if os.path.exists(ready):
            return directory
        print(f"FAIL newlib: does not build, see {build}/newlib.log")
    return None


def musl():
    given = os.environ.get("WICK_MUSL")
    if not given:
        print("skip musl: WICK_MUSL names no copy of it for riscv64; build-library makes one from its source")
    return given


def link(kind, prefix, source, program):
    """But for glibc itself, without a trace of it: neither its headers nor its start files."""
    if kind == "glibc":
        subprocess.run([CC, "-O2", "-w", "-static", source, "-o", program], check=True)
        return
    top = f"{prefix}/riscv64-unknown-elf" if kind == "newlib" else prefix
    start, libraries = ("crt0.o", ["-lm", "-lc", "-lgloss", "-lc"]) if kind == "newlib" else ("crt1.o", ["-lm", "-lc"])
    own = subprocess.run([CC, "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    undefined = ["-U__linux__", "-Ulinux", "-Uunix"] if kind == "newlib" else []
    subprocess.run([CC, "-O2", "-w", "-static", "-no-pie", "-fno-pic", "-fno-stack-protector", "-mcmodel=medany", "-nostdinc", "-nostdlib",
                    *undefined, "-isystem", f"{top}/include", "-isystem", own, source, f"{top}/lib/{start}", "-o", program,
                    f"-L{top}/lib", *libraries, "-lgcc", libraries[-1]], check=True)


def check_picolibc(wick, work, say):
    """A whole program from its first instruction to the last: every stack, every count, of 64 and of 32 bits."""
    compiler, top = "riscv64-unknown-elf-gcc", "/usr/lib/picolibc/riscv64-unknown-elf"
    if not shutil.which(compiler) or not os.path.isdir(top):
        print("skip picolibc: the package picolibc-riscv64-unknown-elf is not installed")
        return
    for march, mabi in (("rv64imafdc", "lp64d"), ("rv32imac", "ilp32")):
        for source in sorted(glob.glob(f"{HERE}/programs/*.c")):
            name = os.path.basename(source)[:-2]
            if name == "coroutines" or (name, mabi) == ("floats", "ilp32"):  # no makecontext; no rounding modes without a unit for them
                continue
            program, out = f"{work}/{name}-{march}", f"{work}/library.folded"
            subprocess.run([compiler, "-O2", "-w", f"-march={march}", f"-mabi={mabi}", "-static", "-nostartfiles", "-nostdlib", "-isystem",
                            f"{top}/include", source, f"{HERE}/bare.c", f"-L{top}/lib/{march}/{mabi}", "-lm", "-lc", "-lgcc", "-o", program], check=True)
            results = []
            for engine in ("builtin", "qemu"):
                p = subprocess.run([wick, "trace", "-q", "--engine", engine, "-o", out, program, "argument"], input=DATA, capture_output=True)
                results.append((p.returncode, p.stdout, p.stderr, open(out).read()))
            say(results[0] == results[1] and results[0][0] == 0 and results[0][3].count(";main") > 3, f"picolibc-{march}-{name}",
                " / ".join(str(r[:3]) for r in results) + ", or the counts differ")


def check(wick, work, build, say, below_main):
    check_picolibc(wick, work, say)
    check_files(wick, work, say, "glibc", None)
    for kind, prefix in (("newlib", newlib(build)), ("musl", musl())):
        if not prefix:
            continue
        for source in sorted(glob.glob(f"{HERE}/programs/*.c")):
            name = os.path.basename(source)[:-2]
            if name == "coroutines":  # neither has makecontext
                continue
            program = f"{work}/{name}-{kind}"
            link(kind, prefix, source, program)
            compare(wick, work, say, below_main, f"{kind}-{name}", program)
        check_files(wick, work, say, kind, prefix)


def compare(wick, work, say, below_main, name, program):
    results = []
    for engine in ("builtin", "qemu"):
        out = f"{work}/library.folded"
        p = subprocess.run([wick, "trace", "-q", "--engine", engine, "-o", out, program, "argument"], input=DATA, capture_output=True)
        results.append((p.returncode, p.stdout, p.stderr, below_main(out)))
    say(results[0] == results[1] and results[0][0] == 0 and len(results[0][3]) > 3, name,
        " / ".join(str(r[:3]) for r in results) + ", or the counts differ")


def check_files(wick, work, say, kind, prefix):
    program, data = f"{work}/files-{kind}", f"{work}/data"
    link(kind, prefix, f"{HERE}/files.c", program)
    with open(data, "w") as f:
        f.write("one\ntwo three\n")
    p = subprocess.run([wick, "trace", "-q", "--file", f"/data={data}", "--env", "PLACE=here", "-o", f"{work}/out", program, "a", "b c"],
                       capture_output=True, text=True)
    place = "nowhere" if kind == "newlib" else "here"  # newlib's start file passes no environment on
    wanted = f"14 bytes, 111 o, then at 1\nsize 14 14\nabsent -1\nread-only -1\n{place} a;b c;\n"
    say((p.returncode, p.stdout) == (3, wanted), f"{kind}-files", f"{p.returncode} {p.stdout} {p.stderr}")
