"""A server for the link over HTTP to suffer: each connection is handed to what the test says it does."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable

from heek.ki import cbor

OK = cbor.encode({"ki": 1, "table": bytes(8)})


def answer(
    body: bytes = OK,
    status: str = "200 OK",
    kind: str = "application/cbor",
    more: str = "",
    close: bool = True,
) -> bytes:
    """A whole answer, as it goes over the wire."""
    end = "Connection: close\r\n" if close else ""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}{end}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Server:
    """One that hears requests on a free port and hands each connection to `behave`.

    With `tls` it does so over TLS; `heard` has what came through, `met` counts the connections.
    """

    def __init__(
        self, behave: Callable[[socket.socket, bytes], None], tls: ssl.SSLContext | None = None
    ) -> None:
        self._behave = behave
        self._tls = tls
        self.heard: list[bytes] = []
        self.met = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.met += 1
            with contextlib.suppress(OSError), connection:
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                heard = b""
                while b"\r\n\r\n" not in heard:
                    if not (piece := connection.recv(65536)):
                        raise ConnectionError
                    heard += piece
                head, _, body = heard.partition(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                while len(body) < length:
                    body += connection.recv(65536)
                self.heard.append(head + b"\r\n\r\n" + body)
                self._behave(connection, body)
                connection.close()

    def close(self) -> None:
        """No more connections; whoever waits is told that the test is over."""
        self._ended.set()
        self._socket.close()

    def wait(self, seconds: float) -> bool:
        """Whether the test is over."""
        return self._ended.wait(seconds)
