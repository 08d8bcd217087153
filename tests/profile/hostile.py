"""What a stranger has prepared where wick is called: repositories that want to run programs, directories and links that lead elsewhere."""
import os
import shutil
import stat
import subprocess
import tempfile

from common import WICK, WORK, run_json, say

OTHER = 65534  # a user who is not us


def profile_in(folder, name, **environment):
    """A run of next to nothing, kept where the other runs are."""
    done = subprocess.run([WICK, "profile", "-q", "-g", "none", "-o", WORK + "/wick-out", "--name", name, "--allow-partial", "--", "true"], cwd=folder,
                          env=dict(os.environ, **environment), capture_output=True, text=True, timeout=60)
    return done, run_json(name) if done.returncode == 0 else {}


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


# ---- git ----

COMMIT, OLDER = "0123456789abcdef0123456789abcdef01234567", "f" * 40


def repository(name, head="ref: refs/heads/main\n", **files):
    """The files of a .git as git makes them; a key's __ is a slash."""
    tree = os.path.join(WORK, "git", name)
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(os.path.join(tree, ".git/refs/heads"))
    os.makedirs(os.path.join(tree, ".git/objects"))
    os.makedirs(os.path.join(tree, "below/it"))
    write(os.path.join(tree, ".git/HEAD"), head)
    for path, text in files.items():
        write(os.path.join(tree, ".git", path.replace("__", "/")), text)
    return tree


def git_is(case, folder, commit, branch):
    done, run = profile_in(folder, "git")
    found = run.get("git_commit"), run.get("git_branch")
    say(done.returncode == 0 and found == (commit, branch) and run["git_dirty"] is None, f"git/{case}", f"{found} {done.stderr}")


def git_is_read():
    loose = repository("loose", refs__heads__main=COMMIT + "\n", packed_refs="x")
    git_is("a branch", loose, COMMIT, "main")
    git_is("from a folder below", os.path.join(loose, "below/it"), COMMIT, "main")
    packed = repository("packed")
    write(packed + "/.git/packed-refs", f"# pack-refs with: peeled fully-peeled sorted\n{OLDER} refs/heads/mai\n{COMMIT} refs/heads/main\n^{OLDER}\n")
    git_is("a packed reference", packed, COMMIT, "main")
    write(packed + "/.git/refs/heads/main", OLDER + "\n")
    git_is("a loose reference is newer", packed, OLDER, "main")
    git_is("detached", repository("detached", head=COMMIT + "\n"), COMMIT, None)
    git_is("SHA-256", repository("long", head="a" * 64 + "\n"), "a" * 64, None)
    git_is("a reference to a reference", repository("chain", refs__heads__main="ref: refs/heads/x/y\n", refs__heads__x__y=COMMIT), COMMIT, "main")
    git_is("no commit yet", repository("unborn"), None, "main")
    write(loose + "/.git/worktrees/other/HEAD", "ref: refs/heads/topic/a\n")
    write(loose + "/.git/worktrees/other/commondir", "../..\n")
    write(loose + "/.git/refs/heads/topic/a", OLDER + "\n")
    write(WORK + "/git/other/.git", f"gitdir: {loose}/.git/worktrees/other\n")
    git_is("a worktree", WORK + "/git/other", OLDER, "topic/a")
    if shutil.which("git"):
        tree = os.path.join(WORK, "git/real")
        for words in (["init", "-q", "-b", "trunk", tree], ["-C", tree, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "x"],
                      ["-C", tree, "worktree", "add", "-q", "-b", "side", WORK + "/git/side"], ["-C", tree, "pack-refs", "--all"]):
            subprocess.run(["git", *words], check=True, capture_output=True)
        commit = subprocess.run(["git", "-C", tree, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        git_is("as git makes it", tree, commit, "trunk")
        git_is("a worktree as git makes it", WORK + "/git/side", commit, "side")


def git_is_not_believed():
    for case, head in (("a reference that leads out", "ref: refs/../../outside\n"), ("a reference that is none", "ref: /etc/passwd\n"), ("no commit", "x" * 40),
                       ("a long one", "ref: refs/heads/" + "a/" * 5000), ("a circle", "ref: refs/heads/circle\n")):
        tree = repository("odd", head=head, refs__heads__circle="ref: refs/heads/circle\n")
        write(WORK + "/git/odd/outside", COMMIT)
        git_is(case, tree, None, "circle" if "circle" in head else None)
    tree = repository("links", refs__heads__real=COMMIT)
    os.symlink("real", tree + "/.git/refs/heads/main")
    git_is("a reference that is a link", tree, None, "main")
    os.unlink(tree + "/.git/HEAD")
    os.mkfifo(tree + "/.git/HEAD")
    git_is("a HEAD that is a pipe", tree, None, None)
    os.unlink(tree + "/.git/HEAD")
    os.symlink("refs/heads/real", tree + "/.git/HEAD")
    git_is("a HEAD that is a link", tree, None, None)
    inner = repository("outer/inner", head=COMMIT)
    repository("outer", head=OLDER)
    shutil.rmtree(inner, ignore_errors=True)
    write(inner + "/.git", "gitdir: nowhere\n")
    git_is("a .git that leads nowhere is not looked past", inner, None, None)
    if os.geteuid() == 0:
        tree = repository("theirs", refs__heads__main=COMMIT)
        os.chown(tree + "/.git", OTHER, OTHER)
        git_is("another user's", tree, None, None)
        os.chown(tree + "/.git", 0, 0)
        os.chown(tree + "/.git/HEAD", OTHER, OTHER)
        git_is("another user's HEAD", tree, None, None)
        os.chown(tree + "/.git", OTHER, OTHER)
        run = profile_in(tree, "git", SUDO_UID=str(OTHER))[1]
        say(run.get("git_commit") == COMMIT, "git/that of the user who called sudo", str(run.get("git_commit")))


def nothing_is_started():
    """A repository's configuration names programs, and so may the PATH: neither is run."""
    tree, mark = repository("trap", refs__heads__main=COMMIT + "\n"), os.path.join(WORK, "git/started")
    program = os.path.join(WORK, "git/bin/git")
    write(program, f"#!/bin/sh\necho \"$0 $*\" >>{mark}\n", 0o755)
    write(tree + "/.git/config", f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {program}\n\thooksPath = {os.path.dirname(program)}\n\tpager = {program}\n"
          f"\tsshCommand = {program}\n[filter \"x\"]\n\tclean = {program}\n\tprocess = {program}\n")
    write(tree + "/.gitattributes", "* filter=x\n")
    write(tree + "/file", "x")
    for case, environment in (("by its configuration", {}), ("by the PATH", {"PATH": os.path.dirname(program) + ":" + os.environ["PATH"]})):
        done = profile_in(tree, "git", **environment)[0]
        said = open(mark, encoding="utf-8").read() if os.path.exists(mark) else ""
        say(done.returncode == 0 and not said, f"git/nothing is started {case}", said + done.stderr)
        if said:
            os.unlink(mark)


# ---- directories ----

def profile_here(folder, *words):
    return subprocess.run([WICK, "profile", "-q", "-g", "none", "--name", "x", "--allow-partial", *words], cwd=folder, capture_output=True, text=True,
                          errors="replace", timeout=60)


def refused(case, folder, why):
    """Nothing is recorded, and nothing is in the directory or in what a link leads to."""
    before = sorted(os.listdir(folder + "/wick-out")), sorted(os.listdir(folder))
    done = profile_here(folder, "--", "touch", "ran")
    said = done.returncode == 1 and f"wick: wick-out: {why}" in done.stderr and done.stderr.count("\n") == 1
    after = sorted(os.listdir(folder + "/wick-out")), sorted(os.listdir(folder))
    say(said and before == after, f"directories/{case} is refused", f"{done.returncode}: {done.stderr} {before} {after}")


def directories_of_others():
    folder = tempfile.mkdtemp(prefix="wick-hostile.")
    base = folder + "/wick-out"
    try:
        os.mkdir(base)
        os.chmod(base, 0o777)
        refused("one that anybody may write to", folder, "other users can write to it")
        os.chmod(base, 0o1777)
        say(profile_here(folder, "--", "true").returncode == 0, "directories/one that is sticky is fine")
        shutil.rmtree(base)
        os.symlink("elsewhere", base)
        os.mkdir(folder + "/elsewhere")
        say(profile_here(folder, "--", "true").returncode == 0 and os.listdir(folder + "/elsewhere") == ["x"], "directories/a link of one's own is followed")
        shutil.rmtree(folder + "/elsewhere/x")
        os.chmod(folder, 0o777)
        refused("a link that anybody can have made", folder, "a link that another user")
        if os.geteuid() != 0:
            return print("skip directories/of other users: only root can make them", flush=True)
        os.unlink(base)
        os.mkdir(base)
        os.chown(base, OTHER, OTHER)
        refused("another user's", folder, "belongs to another user")
        os.chown(base, 0, OTHER)
        os.chmod(base, 0o775)
        refused("one that another group may write to", folder, "other users can write to it")
    finally:
        shutil.rmtree(folder)


ATTACK = """
working=$(cd wick-out && ls -d .x.wick-*)
mv wick-out aside
mkdir wick-out
ln -s {secret} "wick-out/$working"
echo moved
"""


def renamed_meanwhile():
    """The directory's owner renames root's while it records, and puts a link in its place."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return print("skip directories/renamed meanwhile: takes root and setpriv", flush=True)
    folder, secret = tempfile.mkdtemp(prefix="wick-hostile."), tempfile.mkdtemp(prefix="wick-secret.")
    try:
        os.chown(folder, OTHER, OTHER)
        os.chmod(folder, 0o755)
        names = ["stacks.folded", "flamegraph.svg", "profile.csv", "report.txt", "run.json", "load.log", "target.log"]
        for name in names:
            write(os.path.join(secret, name), "secret", 0o600)
        subprocess.run([WICK, "record", "-q", "-g", "none", "-F", "9999", "-o", secret + "/profile.data", "--", "ls", "-lR", "/usr/lib"], stdout=subprocess.DEVNULL)
        done = profile_here(folder, "--capture", "--load", "echo", "--", "setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "sh", "-c",
                            ATTACK.format(secret=secret))
        content = {name: open(os.path.join(secret, name), encoding="utf-8", errors="replace").read() for name in names}
        kept = sorted(os.listdir(secret)) == sorted(names + ["profile.data"]) and set(content.values()) == {"secret"}
        say(kept and os.path.islink(os.path.join(folder, "wick-out", os.listdir(folder + "/wick-out")[0])), "directories/renamed meanwhile: nothing is written elsewhere",
            f"{done.returncode}: {done.stdout} {done.stderr} {sorted(os.listdir(secret))} {content}")
        left = os.path.join(folder, "aside")
        say(os.stat(left).st_uid == 0 and all(not entry.startswith(".x.wick") for entry in os.listdir(left)),
            "directories/renamed meanwhile: nothing is left half", str(os.listdir(left)))
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(secret)


def recordings():
    """A link at the output's name, and a recording that others could read."""
    folder = tempfile.mkdtemp(prefix="wick-hostile.")
    try:
        write(folder + "/victim", "secret", 0o600)
        os.symlink("victim", folder + "/perf.data")
        done = subprocess.run([WICK, "record", "-q", "-g", "none", "--", "true"], cwd=folder, capture_output=True, text=True)
        with open(folder + "/victim", "rb") as file:
            kept = file.read() == b"secret"
        say(done.returncode == 0 and kept and not os.path.islink(folder + "/perf.data"), "recordings/a link is not followed", f"{done.returncode}: {done.stderr}")
        os.chmod(folder + "/perf.data", 0o644)
        subprocess.run([WICK, "record", "-q", "-g", "none", "--", "true"], cwd=folder, capture_output=True)
        mode = stat.S_IMODE(os.stat(folder + "/perf.data").st_mode)
        say(mode == 0o600, "recordings/private whatever was there before", oct(mode))
    finally:
        shutil.rmtree(folder)


def all_parts():
    for part in (git_is_read, git_is_not_believed, nothing_is_started, directories_of_others, renamed_meanwhile, recordings):
        part()
