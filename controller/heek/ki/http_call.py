"""One question over HTTP: a connection of its own, the request, the answer, all before one deadline.

It blocks, so it runs on a thread. Every single wait is cut to what is left of the deadline: a server that
sends a byte now and then is no better than one that sends none. What is read is bounded, head and all. A
redirect is an answer like any other and never followed.

Over TLS (1.3 alone) the key of the other end's certificate is looked at before a byte of ours is sent; no
authority, name or time of it is.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from heek.errors import LinkError, LinkTooSlow
from heek.ki.certificate_key import ed25519_key
from heek.ki.link import MOST_ANSWER_BYTES
from heek.ki.lookup import Address

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CONNECT_S: Final = 3.0
"""For one address where there is another one: beyond it the other is tried."""
MOST_HEAD_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; whether it is the KI's is not judged here."""

    status: int
    kind: str
    """Its media type, lower case."""
    retry_after: str | None
    date: str | None
    data: bytes
    """At most one byte more than `MOST_ANSWER_BYTES`."""
    address: Address
    """Where it came from."""


class Call:
    """One question to `where` (words: HOST:PORT); made anywhere, `run` once on a thread, `cut` from anywhere.

    `deadline` is an instant of `time.monotonic`; `deadline_s` is how long that was when it began.
    """

    def __init__(self, where: str, deadline: float, deadline_s: float) -> None:
        self._where = where
        self._deadline = deadline
        self._deadline_s = deadline_s
        self._socket: socket.socket | None = None
        self._cut = False

    def cut(self) -> None:
        """Break off what is under way; it ends with LinkError on its thread."""
        self._cut = True
        if (sock := self._socket) is not None:
            with contextlib.suppress(OSError):
                # Of the socket itself: the TLS layer's own belongs to the thread that reads.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def run(
        self, addresses: Sequence[Address], request: bytes, judge_key: Callable[[bytes | None], None] | None
    ) -> Reply:
        """Send a whole request and read the answer; raises LinkError, naming what went wrong.

        With `judge_key` over TLS: it gets the other end's Ed25519 key (None: it has none), and raises
        LinkError if that is not to get the request.
        """
        try:
            sock, address = self._connected(addresses)
            try:
                if judge_key is not None:
                    sock = over = self._over_tls(sock)
                    judge_key(ed25519_key(over.getpeercert(binary_form=True) or b""))
                return self._exchange(sock, request, address)
            finally:
                self._socket = None
                sock.close()
        except LinkError:
            raise
        except ConnectionRefusedError:
            raise LinkError(f"nothing listens at {self._where}; is the KI running?") from None
        except TimeoutError:
            raise self.late() from None
        except (http.client.HTTPException, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _UNREACHABLE:
                raise LinkError(
                    f"{self._where} cannot be reached ({error.strerror}); is the network there?"
                ) from None
            words = getattr(error, "strerror", None) or type(error).__name__
            raise LinkError(f"{self._where} broke off ({words})") from None

    def late(self) -> LinkTooSlow:
        """That the deadline has passed."""
        return LinkTooSlow(f"{self._where} did not answer within {self._deadline_s:g} s")

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self._cut:
            raise LinkError("the link is closed")
        return left

    def _connected(self, addresses: Sequence[Address]) -> tuple[socket.socket, Address]:
        failed: OSError | None = None
        for place, address in enumerate(addresses):
            others = len(addresses) - 1 - place
            patience = self._left()
            if others:
                patience = min(CONNECT_S, patience / (others + 1))
            sock = socket.socket(address.family, socket.SOCK_STREAM)
            self._socket = sock
            try:
                sock.settimeout(patience)
                sock.connect(address.at)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock, address
            except OSError as error:
                # Refused says more than silence does, whichever came first.
                failed = error if not isinstance(failed, ConnectionRefusedError) else failed
                sock.close()
                self._socket = None
        assert failed is not None
        raise failed

    def _over_tls(self, sock: socket.socket) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        sock.settimeout(self._left())
        try:
            over = context.wrap_socket(sock, do_handshake_on_connect=False)
            self._socket = over
            # One time-out for all of it, however slowly it drips.
            over.settimeout(self._left())
            over.do_handshake()
        except ssl.SSLError as error:
            raise LinkError(
                f"{self._where} does not speak TLS as a KI does ({error.reason or type(error).__name__}); "
                "is it the KI's tls_port?"
            ) from None
        return over

    def _exchange(self, sock: socket.socket, request: bytes, address: Address) -> Reply:
        wire = _Wire(sock, self._left)
        wire.send(request)
        response = http.client.HTTPResponse(cast(socket.socket, wire), method="POST")
        try:
            response.begin()
            data = response.read(MOST_ANSWER_BYTES + 1)
            if len(data) <= MOST_ANSWER_BYTES and response.length:
                raise http.client.IncompleteRead(data, response.length)
            return Reply(
                response.status,
                response.headers.get_content_type(),
                response.headers.get("Retry-After"),
                response.headers.get("Date"),
                data,
                address,
            )
        finally:
            response.close()


class _Wire:
    """A connection as `http.client` reads from it, each wait cut to what `left` gives."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._left = left

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._sock.settimeout(self._left())
            view = view[self._sock.send(view[:65536]) :]

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reading(self._sock, self._left))


class _Reading(io.RawIOBase):
    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._left = left
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._sock.settimeout(self._left())
        count = self._sock.recv_into(buffer)
        self._read += count
        if self._read > MOST_ANSWER_BYTES + MOST_HEAD_BYTES:
            raise http.client.HTTPException("more than an answer of a KI may have")
        return count


_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})
