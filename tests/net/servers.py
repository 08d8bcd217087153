"""Servers on loopback for tests: one that answers well, and several that do not."""
import http.server
import os
import socket
import socketserver
import ssl
import subprocess
import threading


class Threaded(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = allow_reuse_address = True

    def handle_error(self, request, client_address):
        """The other side may go when it likes."""


class ThreadedUnix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("local", 0)


def start(handler, path=None, tls=None):
    """(server, its port)"""
    server = ThreadedUnix(path, handler) if path else Threaded(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server, 0 if path else server.server_address[1]


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps what it was asked in `requests`: (method, path, headers, body). Subclasses say what it answers."""
    protocol_version = "HTTP/1.1"
    requests = None

    def log_message(self, *_):
        pass

    def answer(self):
        return 200, {}, b"fine"

    def handle_any(self):
        size = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(size)
        if self.requests is not None:
            self.requests.append((self.command, self.path, dict(self.headers), self.body))
        status, headers, body = self.answer()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = handle_any


def bad(*sent, hang=False):
    """A handler that sends these bytes whatever it is asked; then hangs until the other side ends, or ends."""
    class Bad(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            for piece in sent:
                self.request.sendall(piece)
            while hang and self.request.recv(65536):
                pass
    return Bad


def certificate(directory, name, host):
    """A certificate of its own authority: (certificate, key) as paths."""
    certificate_path, key = os.path.join(directory, name + ".pem"), os.path.join(directory, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate_path, "-days", "3", "-subj", f"/CN={host}",
                    "-addext", f"subjectAltName=DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else "")], check=True, capture_output=True)
    return certificate_path, key


def tls_with(certificate_path, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_path, key)
    return context


def nobody_listens():
    """A port where nobody does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
