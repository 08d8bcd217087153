"""Servers for tests: Debian's ClickHouse on loopback, unpacked into the build folder, and a server that answers what it is told to."""
import glob
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

USERS = """<yandex><profiles><default><max_memory_usage>6000000000</max_memory_usage><max_threads>2</max_threads></default>
<reader><readonly>1</readonly></reader></profiles><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<agent><password>s3cret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></agent>
<view><password>look</password><networks><ip>127.0.0.1</ip></networks><profile>reader</profile><quota>default</quota></view>
<red><password>r3d</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
<allow_databases><database>red</database></allow_databases></red>
<blue><password>bl3u</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
<allow_databases><database>blue</database></allow_databases></blue></users>
<quotas><default/></quotas></yandex>"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def unpack(directory, package="clickhouse-server"):
    """(the folder with the package and what it needs, why there is none)."""
    root = os.path.join(directory, "root")
    if os.path.exists(os.path.join(root, "unpacked")):
        return root, None
    if not shutil.which("apt-get"):
        return None, f"apt-get is not there to fetch Debian's {package}"
    planned = subprocess.run(["apt-get", "-s", "install", "--no-install-recommends", package], capture_output=True, text=True)
    names = [line.split()[1] for line in planned.stdout.splitlines() if line.startswith("Inst ")]
    packed = os.path.join(directory, "debs")
    os.makedirs(packed, exist_ok=True)
    fetched = names and subprocess.run(["apt-get", "download", *names], cwd=packed, capture_output=True, text=True)
    if not fetched or fetched.returncode:
        return None, f"Debian's {package} can't be fetched: " + ((fetched or planned).stderr.strip().splitlines() or ["no such package"])[-1]
    for name in os.listdir(packed):
        subprocess.run(["dpkg", "-x", os.path.join(packed, name), root], check=True)
    with open(os.path.join(root, "unpacked"), "w", encoding="ascii") as file:
        file.write("whole\n")
    return root, None


class ClickHouse:
    """One node. `more` is added to its configuration."""

    def __init__(self, root, directory, ports=None, more=""):
        self.root, self.directory, self.process = root, directory, None
        self.http, self.tcp, self.between = ports or free_ports(3)
        for name in ("data", "tmp", "log"):
            os.makedirs(os.path.join(directory, name), exist_ok=True)
        with open(os.path.join(directory, "users.xml"), "w", encoding="ascii") as file:
            file.write(USERS)
        with open(os.path.join(directory, "config.xml"), "w", encoding="ascii") as file:
            file.write(f"""<yandex><logger><level>warning</level><log>{directory}/log/log</log><errorlog>{directory}/log/errors</errorlog></logger>
<http_port>{self.http}</http_port><tcp_port>{self.tcp}</tcp_port><interserver_http_port>{self.between}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host><listen_host>127.0.0.1</listen_host><path>{directory}/data/</path><tmp_path>{directory}/tmp/</tmp_path>
<users_config>{directory}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>{more}</yandex>""")

    def start(self):
        """Nothing, or why it does not run."""
        libraries = [os.path.join(self.root, part) for part in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
        with open(os.path.join(self.directory, "log", "out"), "wb") as out:
            self.process = subprocess.Popen([os.path.join(self.root, "usr/sbin/clickhouse-server"), f"--config-file={self.directory}/config.xml"],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ, LD_LIBRARY_PATH=":".join(libraries)))
        end = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.ask("SELECT 1")
                return None
            except OSError:
                time.sleep(0.1)
        with open(os.path.join(self.directory, "log", "out"), errors="replace") as file:
            return "clickhouse-server does not start: " + file.read()[-300:]

    def ask(self, sql):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}/", data=sql.encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.read().decode()

    def url(self, database):
        return f"clickhouse://127.0.0.1:{self.http}/{database}"

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Cluster:
    """ZooKeeper and three nodes: the first shard has two replicas, the second one."""

    def __init__(self, root, keeper_root, directory):
        os.makedirs(os.path.join(directory, "keeper"), exist_ok=True)
        self.directory, self.jars, self.keeper, self.keeper_port = directory, glob.glob(keeper_root + "/usr/share/java/*.jar"), None, free_ports(1)[0]
        ports = [free_ports(3) for _ in range(3)]
        replicas = [f"<replica><host>127.0.0.1</host><port>{tcp}</port></replica>" for _, tcp, _ in ports]
        shard = "<shard><internal_replication>true</internal_replication>"
        more = (f"<zookeeper><node><host>127.0.0.1</host><port>{self.keeper_port}</port></node></zookeeper>"
                f"<remote_servers><fleet>{shard}{replicas[0]}{replicas[1]}</shard>{shard}{replicas[2]}</shard></fleet></remote_servers>"
                "<distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl>")
        self.nodes = [ClickHouse(root, os.path.join(directory, f"node{i}"), ports[i], more + f"<macros><shard>{1 if i < 2 else 2}</shard><replica>node{i}</replica></macros>")
                      for i in range(3)]

    def start(self):
        """Nothing, or why it does not run."""
        config = os.path.join(self.directory, "keeper.cfg")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"dataDir={self.directory}/keeper\nclientPort={self.keeper_port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=2000\n"
                       "4lw.commands.whitelist=ruok\n")
        if not shutil.which("java"):
            return "java is not installed"
        self.keeper = subprocess.Popen(["java", "-Xmx256m", "-cp", ":".join(self.jars), "org.apache.zookeeper.server.quorum.QuorumPeerMain", config],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while not self.is_ready():
            if self.keeper.poll() is not None or time.monotonic() > end:
                return "ZooKeeper does not start"
            time.sleep(0.2)
        return next((why for why in (node.start() for node in self.nodes) if why), None)

    def is_ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.keeper_port), 5) as one:
                one.sendall(b"ruok")
                return one.recv(4) == b"imok"
        except OSError:
            return False

    def stop(self):
        for node in self.nodes:
            node.kill()
        if self.keeper:
            self.keeper.kill()
            self.keeper.wait()


class Modern:
    """The engine of a modern release, from the Python registry, behind modern.py."""

    def __init__(self, environment, directory):
        self.environment, self.directory, self.process, self.port = environment, directory, None, 0

    def start(self):
        """Nothing, or why it does not run."""
        python = os.path.join(self.environment, "bin", "python")
        if not os.path.exists(os.path.join(self.environment, "whole")):
            made = subprocess.run([sys.executable, "-m", "venv", self.environment], capture_output=True, text=True)
            made = made if made.returncode else subprocess.run([python, "-m", "pip", "install", "-q", "chdb-core"], capture_output=True, text=True)
            if made.returncode:
                return "chdb-core can't be installed: " + (made.stderr.strip().splitlines() or ["?"])[-1]
            with open(os.path.join(self.environment, "whole"), "w", encoding="ascii") as file:
                file.write("whole\n")
        os.makedirs(self.directory, exist_ok=True)
        self.process = subprocess.Popen([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "modern.py"), self.directory],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = self.process.stdout.readline().strip()
        self.port = int(port) if port.isdigit() else 0
        return None if self.port else "the engine does not start"

    def url(self, database):
        return f"clickhouse://127.0.0.1:{self.port}/{database}"

    def ask(self, sql):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", data=sql.encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=3600) as answer:
            return answer.read()[1:].decode()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Liar:
    """Answers every request with the same status and bytes; a status of 0 closes the connection."""

    def __init__(self, answers):
        liar = self
        self.answers, self.seen = list(answers), []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                liar.seen.append((self.path, body))
                status, answer = liar.answers.pop(0) if len(liar.answers) > 1 else liar.answers[0]
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        return f"clickhouse://127.0.0.1:{self.server.server_port}/wick"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
