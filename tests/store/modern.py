"""usage: modern.py DIRECTORY

The engine of a modern ClickHouse (chdb) behind as much of its HTTP interface as wick uses. Prints its port. Rows come as a body, settings and the
query as parameters. Ends with its standard input.
"""
import http.server
import os
import re
import sys
import threading
import urllib.parse

from chdb import session

ENGINE = session.Session(sys.argv[1])
LOCK = threading.Lock()
OURS = {"query", "wait_end_of_query", "buffer_size"}


def run(query, settings, body):
    if query.startswith("INSERT"):
        name = os.path.join(sys.argv[1], "body")
        with open(name, "wb") as file:
            file.write(body)
        table = re.match(r"INSERT INTO (\S+) FORMAT RowBinary$", query)[1]
        given = ", ".join(f"{key} = '{value}'" if not value.isdigit() else f"{key} = {value}" for key, value in settings.items())
        columns = ", ".join(f"{line.split(chr(9))[0]} {line.split(chr(9))[1]}" for line in
                            str(ENGINE.query(f"DESCRIBE TABLE {table}", "TabSeparated")).splitlines())
        columns = columns.replace("\\'", "'").replace("'", "\\'")
        return ENGINE.query(f"INSERT INTO {table} SETTINGS {given} SELECT * FROM file('{name}', 'RowBinary', '{columns}')", "RowBinary").bytes()
    return ENGINE.query(body.decode(errors="surrogateescape").replace("FORMAT RowBinary", ""), "RowBinary").bytes()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        settings = {key: value for key, value in asked.items() if key not in OURS}
        try:
            with LOCK:
                status, answer = 200, run(asked.get("query", ""), settings, body)
        except Exception as error:  # whatever the engine raises is an answer
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
