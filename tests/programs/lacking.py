"""What a surrounding may lack: why it is not there, or None. Tests that need it are skipped with this reason."""
import os
import subprocess


def disk(folder):
    """A disk under a folder, for tests/programs/waits.c to wait for."""
    done = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True)
    kind = done.stdout.strip()
    return f"{os.path.abspath(folder)} is in memory ({kind})" if kind in ("tmpfs", "ramfs") else None


def terminal():
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return f"no terminal can be made here ({error})"
    return None
