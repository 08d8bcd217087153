"""Debug files from debuginfod: Debian's own server on loopback gives what --symfs gives; one that hangs, lies, or sends garbage or another file
costs at most its time limit, says so in a note, and leaves nothing in the clients' cache.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request

import servers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "parity"))
import fixtures  # noqa: E402


# The vdso is the machine's own, and no server has it; the C library may have more debug information here than there.
USER = ["--user-only", "--no-inline", "--ignore", "vdso|gettime"]


def build_ids(folder):
    """Of the programs below it, as binutils reads them."""
    found = []
    for path, _, names in os.walk(folder):
        for name in names:
            told = subprocess.run(["readelf", "-nhW", os.path.join(path, name)], capture_output=True, text=True, errors="replace").stdout
            match = re.search(r"Build ID: ([0-9a-f]+)", told)
            if match and re.search(r"Type: +(EXEC|DYN)", told) and not name.endswith(".debug"):
                found.append(match[1])
    return found


class Symbols:
    def __init__(self, say, wick, work):
        self.say, self.wick, self.work = say, wick, os.path.join(work, "symbols")
        os.makedirs(self.work)
        fixtures.unpack()
        self.data = {}
        for name in ("c", "cpp", "rust"):
            self.data[name] = os.path.join(self.work, name + ".data")
            with open(self.data[name], "wb") as file:
                file.write(fixtures.read(name, "perf.data"))

    def fold(self, *words, cache="cache", urls=None, command="fold"):
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and not name.startswith("DEBUGINFOD")}
        env.update(HOME=os.path.join(self.work, "home"), DEBUGINFOD_CACHE_PATH=os.path.join(self.work, cache))
        if urls:
            env["DEBUGINFOD_URLS"] = urls
        return subprocess.run([self.wick, command, *words], capture_output=True, text=True, errors="replace", env=env, timeout=300)

    def cached(self, cache):
        """Files with anything in them: what is empty says that a server has not got it."""
        top = os.path.join(self.work, cache)
        found = [os.path.join(where, name) for where, _, names in os.walk(top) for name in names]
        return [path for path in found if os.path.basename(path) in ("debuginfo", "executable") and os.path.getsize(path)], \
            [path for path in found if "debuginfod." in os.path.basename(path)]

    # ---- a good server ----

    def start_server(self):
        """(process, URL); it serves what --symfs reads."""
        port = servers.nobody_listens()
        process = subprocess.Popen(["debuginfod", "-d", ":memory:", "-p", str(port), "-F", "-t0", "-g0", fixtures.SYMFS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        missing = build_ids(fixtures.SYMFS)
        for _ in range(600):
            try:
                while missing:  # until it has seen all
                    opener.open(f"{url}/buildid/{missing[-1]}/executable", timeout=5).close()
                    missing.pop()
                return process, url
            except OSError:
                pass
            if process.poll() is not None:
                break
            time.sleep(0.1)
        process.kill()
        return process, None

    def good(self):
        if not shutil.which("debuginfod"):
            print("skip debuginfod: Debian's package debuginfod is not installed")
            return
        process, url = self.start_server()
        try:
            self.say(url is not None, "debuginfod/the server starts")
            if url:
                self.ask_server(url)
                self.name_later(url)
        finally:
            process.kill()
            process.wait()
        if url:
            self.without_server(url)

    def ask_server(self, url):
        for name, data in self.data.items():
            wanted = self.fold(*USER, "--symfs", fixtures.SYMFS, data).stdout
            without = self.fold(*USER, "--no-debuginfod", data)
            given = self.fold(*USER, "--debuginfod", url, data)
            self.say(given.stdout == wanted and wanted != without.stdout and wanted.count("\n") > 1, f"debuginfod/{name}: the names that --symfs gives", given.stdout[:300] + given.stderr)
        entries, litter = self.cached("cache")
        self.say(entries and not litter, "debuginfod/what came is in the clients' cache", str(entries))
        by_environment = self.fold(*USER, self.data["c"], urls="nonsense " + url, cache="other")
        self.say(by_environment.stdout == self.fold(*USER, "--symfs", fixtures.SYMFS, self.data["c"]).stdout and "nonsense" in by_environment.stderr, "debuginfod/by $DEBUGINFOD_URLS", by_environment.stderr)
        limited = self.fold(*USER, "--debuginfod", url, "--debuginfod-limit", "1K", self.data["c"], cache="small")
        self.say(limited.returncode == 0 and "larger than the limit" in limited.stderr and limited.stdout == self.fold(*USER, "--no-debuginfod", self.data["c"]).stdout, "debuginfod/a file that is too large", limited.stderr)
        told = self.fold(self.data["c"], urls=url, command="doctor").stdout
        self.say(os.path.join(self.work, "cache") in told, "debuginfod/wick doctor says where names came from", told)

    def name_later(self, url):
        """What was pushed without names has them, with lines, after wick store symbolize has asked the server. A second run asks for nothing."""
        def own(text):
            """Frames of the program itself: the C library may be described better here."""
            return {frame for line in text.splitlines() for frame in line.rsplit(" ", 1)[0].split(";") if re.search(r"polygon|one_turn|plain\.c:|spin\.h:", frame)}

        def rows(store):
            with sqlite3.connect(store) as database:
                return [database.execute(f"select * from {table} order by 1, 2, 3").fetchall() for table in ("sample", "hour", "stack", "frame")]
        for name in ("c", "cpp"):
            store, cache, words = os.path.join(self.work, name + ".db"), "later-" + name, ["-q", "--user-only", "--no-inline", "--srcline"]
            pushed = self.fold("-q", "--no-debuginfod", "--symfs", self.work, self.data[name], store, command="push")
            before, unnamed = rows(store), own(self.fold(*words, store).stdout)
            done = self.fold("symbolize", store, "--debuginfod", url, command="store", cache=cache)
            wanted, after = own(self.fold(*words, "--symfs", fixtures.SYMFS, self.data[name]).stdout), own(self.fold(*words, store).stdout)
            self.say(pushed.returncode == done.returncode == 0 and not unnamed and len(wanted) > 1 and wanted == after and (name != "c" or any("plain.c:" in frame for frame in after)),
                     f"debuginfod/{name}: a store's names and lines, later", f"{pushed.stderr} {done.stdout} {done.stderr} {unnamed} {wanted ^ after}")
            self.say(rows(store) == before, f"debuginfod/{name}: samples, stacks and frames stay as they are")
            again = self.fold("symbolize", store, "--no-debuginfod", command="store", cache=cache)
            self.say(again.stdout.startswith("0 places named"), f"debuginfod/{name}: what has a name is not looked for again", again.stdout)

    def without_server(self, url):
        """The cache is there when nobody answers, and when nobody is asked."""
        wanted = self.fold(*USER, "--symfs", fixtures.SYMFS, self.data["c"]).stdout
        offline = self.fold(*USER, self.data["c"])
        self.say(offline.stdout == wanted, "debuginfod/the cache is read without a server", offline.stderr)
        empty = self.fold(*USER, self.data["c"], cache="empty")
        self.say(empty.returncode == 0 and empty.stdout != wanted and not os.path.exists(os.path.join(self.work, "empty")), "debuginfod/no cache, no server", empty.stderr)
        gone = self.fold(*USER, "--debuginfod", url, self.data["c"], cache="gone")
        self.say(gone.returncode == 0 and gone.stdout == empty.stdout and "debuginfod" in gone.stderr, "debuginfod/the server is gone", gone.stderr)

    # ---- bad servers ----

    def bad(self):
        plain = self.fold(*USER, self.data["c"], cache="none").stdout
        other = open(os.path.join(fixtures.SYMFS, "opt/wick/rust/hot"), "rb").read()
        right = open(os.path.join(fixtures.SYMFS, "opt/wick/c/plain"), "rb").read()

        def sends(body, length=None):
            return servers.bad(f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body)

        for name, handler, why in (("hangs", servers.bad(hang=True), "in time"), ("hangs in the middle", servers.bad(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + right[:9000], hang=True), "in time"),
                                   ("sends another file", sends(other), "another build id"), ("sends garbage", sends(os.urandom(50000)), "not an ELF file"), ("sends nothing", sends(b""), ""),
                                   ("lies about the length", sends(right[:len(right) // 2], len(right)), ""), ("is no web server", servers.bad(os.urandom(3000)), ""),
                                   ("cuts the file short", sends(right[:100]), "")):
            _, port = servers.start(handler)
            cache = "bad-" + name.replace(" ", "-")
            done = self.fold(*USER, "--debuginfod", f"http://127.0.0.1:{port}", "--debuginfod-time", "1500ms,3s", self.data["c"], cache=cache)
            entries, litter = self.cached(cache)
            self.say(done.returncode == 0 and done.stdout == plain and why in done.stderr and ("debuginfod" in done.stderr or not why), f"debuginfod/a server that {name}", done.stdout[:200] + done.stderr)
            self.say(not entries and not litter, f"debuginfod/a server that {name} leaves nothing in the cache", str(entries + litter))
        forged = os.path.join(self.work, "forged")
        shutil.copytree(os.path.join(self.work, "cache"), forged)
        for path in self.cached("forged")[0]:
            os.chmod(path, 0o600)
            with open(path, "wb") as file:
                file.write(other)
        done = self.fold(*USER, self.data["c"], cache="forged")
        self.say(done.returncode == 0 and done.stdout == plain, "debuginfod/another file in the cache is not used", done.stdout[:300] + done.stderr)

    def certificate(self):
        """The same server gives names without TLS, and none behind a certificate that no known authority has signed."""
        if not shutil.which("openssl"):
            print("skip debuginfod/certificates: openssl is not installed")
            return
        right = open(os.path.join(fixtures.SYMFS, "opt/wick/c/plain"), "rb").read()
        asked = []

        class Right(servers.Recorder):
            requests = asked

            def answer(self):
                return 200, {"Content-Type": "application/octet-stream"}, right

        plain = self.fold(*USER, self.data["c"], cache="none").stdout
        _, port = servers.start(Right)
        known = self.fold(*USER, "--debuginfod", f"http://127.0.0.1:{port}", self.data["c"], cache="without-tls")
        self.say(known.stdout != plain and asked, "debuginfod/the server without TLS gives names", known.stderr)
        asked.clear()
        _, port = servers.start(Right, tls=servers.tls_with(*servers.certificate(self.work, "own", "localhost")))
        refused = self.fold(*USER, "--debuginfod", f"https://127.0.0.1:{port}", self.data["c"], cache="with-tls")
        self.say(refused.returncode == 0 and refused.stdout == plain and "debuginfod" in refused.stderr, "debuginfod/a certificate that nobody known has signed is refused", refused.stdout[:200] + refused.stderr)
        self.say(not asked and self.cached("with-tls") == ([], []), "debuginfod/nothing is asked or kept behind such a certificate", str(asked))

    def usage(self):
        for words, why in ((["--debuginfod", "ftp://x"], "neither http"), (["--debuginfod", "http://a:b@x"], "refused"), (["--debuginfod", "http://x", "--no-debuginfod"], "combined"),
                           (["--debuginfod-limit", "x"], "size"), (["--debuginfod-time", "5"], "length of time"), (["--debuginfod-time", "1s,"], "length of time")):
            done = self.fold(*words, self.data["c"])
            self.say(done.returncode == 2 and why in done.stderr, f"debuginfod/usage: {' '.join(words)}", done.stderr)


def run(say, wick, work):
    symbols = Symbols(say, wick, work)
    symbols.good()
    symbols.bad()
    symbols.certificate()
    symbols.usage()
