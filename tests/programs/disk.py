"""Whether tests/programs/waits.c can wait for a disk."""
import os
import subprocess


def missing_at(folder):
    """Why nothing waits for a disk there, or None."""
    done = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True)
    kind = done.stdout.strip()
    return f"{os.path.abspath(folder)} is in memory ({kind})" if kind in ("tmpfs", "ramfs") else None
