"""A network's login page: answers 200 with HTML to everything: `python -m ... ADDRESS PORT [CERTIFICATE]`."""

from __future__ import annotations

import http.server
import ssl
import sys

PAGE = b"<html><title>Welcome</title><form>Your room number, please</form></html>"


class Portal(http.server.BaseHTTPRequestHandler):
    """Each request gets the page."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def main(address: str, port: int, certificate: str | None) -> None:
    """Serve until the process is ended."""
    server = http.server.ThreadingHTTPServer((address, port), Portal)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("the portal is there", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
