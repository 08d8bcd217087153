"""Unpacks the fixtures, once for each build folder, and runs wick on them."""
import fcntl
import hashlib
import lzma
import os
import shutil
import subprocess
import tarfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(TOP, "tests/fixtures")
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
WICK = os.environ.get("WICK", os.path.join(BUILD, "wick"))
UNPACKED = os.path.join(BUILD, "fixtures")
SYMFS = os.path.join(UNPACKED, "symfs")


def unpack():
    """Once, though several groups may ask at the same time."""
    os.makedirs(BUILD, exist_ok=True)
    with open(UNPACKED + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unpack_alone()


def unpack_alone():
    """The archive holds a program of a hundred megabytes that is all holes: write it as such."""
    archive = os.path.join(FIXTURES, "root.tar.xz")
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    stamp = os.path.join(UNPACKED, "unpacked")
    if os.path.exists(stamp) and open(stamp, encoding="ascii").read() == digest:
        return
    shutil.rmtree(UNPACKED, ignore_errors=True)
    os.makedirs(UNPACKED)
    with tarfile.open(archive) as packed:
        for member in packed:
            packed.extract(member, UNPACKED, set_attrs=False) if not member.isreg() else write_sparse(packed, member)
    with open(stamp, "w", encoding="ascii") as file:
        file.write(digest)


def write_sparse(packed, member):
    path, source, zeros = os.path.join(UNPACKED, member.name), packed.extractfile(member), bytes(65536)
    with open(path, "wb") as file:
        while block := source.read(65536):
            if block == zeros[:len(block)]:
                file.seek(len(block), os.SEEK_CUR)
            else:
                file.write(block)
        file.truncate()
    os.chmod(path, member.mode)


def read(name, leaf):
    with lzma.open(os.path.join(FIXTURES, name, leaf + ".xz")) as file:
        return file.read()


def unpacked(name, leaf):
    """The path of one of a fixture's packed files."""
    path = os.path.join(UNPACKED, name + "." + leaf)
    packed = os.path.join(FIXTURES, name, leaf + ".xz")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(packed):
        content = read(name, leaf)
        new = f"{path}.new-{os.getpid()}"
        with open(new, "wb") as file:
            file.write(content)
        os.rename(new, path)
    return path


def lookup_options(name):
    return ["--symfs", SYMFS, "--kallsyms", os.path.join(FIXTURES, name, "kallsyms")]


def wick(arguments):
    """(standard output, why it failed or None). No HOME: nothing of this machine's may be found."""
    env = dict(os.environ, HOME=os.path.join(UNPACKED, "no-home"))
    done = subprocess.run([WICK, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=env)
    why = None
    if done.returncode != 0:
        why = f"status {done.returncode}: {done.stderr.decode(errors='replace').strip()[:300]}"
    return done.stdout, why
