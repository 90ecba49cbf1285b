"""An exchange on a serial port: opened, watched and opened again, without ever holding up the loop.

The port is opened and closed on a thread of its own, because a broken adapter takes its time for both.
Everything else happens on the loop, and none of it waits: what the port does not take now stays here, and
the exchange is asked for no more until that is gone, so what waits is never more than one turn's frames. A
port that takes nothing for `STUCK` is put away and opened anew, and so is one that is gone: after one second,
then after twice as long each time, up to ten.

Nothing but frames is ever written to the port. What is wrong is told in `status`, in words for people, and
logged once an outage.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final

from heek.clock import SECOND, Clock, Duration, Instant
from heek.errors import LinkError
from heek.ki.exchange import (
    NOBODY,
    Exchange,
    Happening,
    Identity,
    Role,
    SessionEnded,
    SessionOpened,
    State,
    VersionsDiffer,
    WrongPeer,
)
from heek.ki.link import LinkStatus
from heek.ki.serial_port import SerialPort, advice_on_name, open_port

log: Final = logging.getLogger("heek")

FIRST_REOPEN: Final[Duration] = SECOND
LONGEST_REOPEN: Final[Duration] = 10 * SECOND
STUCK: Final[Duration] = 5 * SECOND
"""A port that takes no byte for so long takes none any more."""
NO_ANSWER: Final[Duration] = 5 * SECOND
"""Calling for longer than this is an outage, and is told with what may be its reason."""
RECENT: Final[Duration] = 5 * SECOND
"""What was on the line longer ago than twice this is no reason any more why nobody answers."""
LEAST_TEXT: Final = 4
"""Bytes below which nobody can say whether they are text."""
MOST_QUOTED: Final = 40
"""Characters of what something else says on the line."""
CLOSING_S: Final = 2.0
"""How long `close` waits for the port to be put away."""


class SerialLine:
    """One end of a serial line. `start` opens the port, and everything happens on `loop` from then on.

    `far_end` names the other end, as in "no answer from the KI's end"; `me` is who this one says it is.
    `on_happening` is called on the loop, and may call `send` and `restart`.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        far_end: str,
        on_happening: Callable[[Happening], None],
        me: Identity = NOBODY,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._name = port
        self._baud = baud
        self._loop = loop
        self._clock = clock
        self._far_end = far_end
        self._on_happening = on_happening
        self._exchange = Exchange(baud=baud, random_bytes=random_bytes, me=me)
        self._port: SerialPort | None = None
        self._trouble = f"opening {port}"
        """Why there is no port."""
        self._failed = False
        self._unwritten = b""
        self._stuck_at: Instant = 0
        self._timer: asyncio.TimerHandle | None = None
        self._turn_asked = False
        self._reopen_wait: Duration = FIRST_REOPEN
        self._calling_since: Instant = 0
        self._seen_at: Instant = 0
        self._seen_before = self._seen_lately = (0, 0, 0)
        """What had been seen on the line at two moments of an outage, at most `RECENT` apart."""
        self._told: set[str] = set()
        """What was logged of the outage that there is; empty: all is well, or was never otherwise."""
        self._closed = False
        self._working = 0
        """How many threads work on the port."""
        self._idle = asyncio.Event()
        """None does."""
        self._idle.set()

    @property
    def is_open(self) -> bool:
        """There is a session, and messages may be sent."""
        return self._exchange.state is State.OPEN

    @property
    def in_trouble(self) -> bool:
        """The port could not be opened, or was lost; to wait a moment will not help."""
        return self._port is None and self._failed

    def start(self) -> None:
        """Open the port, now and whenever it is lost, until `close`."""
        advice = advice_on_name(self._name)
        if advice is not None:
            log.warning("%s", advice)
        self._open()

    def send(self, kind: int, payload: bytes) -> int:
        """Have a message sent, and raise, as `Exchange.send`."""
        number = self._exchange.send(kind, payload)
        self._ask_for_a_turn()
        return number

    def restart(self, reason: str) -> None:
        """Give the session up, so that nothing of it can arrive any more."""
        self._tell(self._exchange.restart(self._clock.now(), reason))
        self._ask_for_a_turn()

    def status(self) -> LinkStatus:
        """How it stands, in words for people."""
        return LinkStatus(self.is_open, self._words(), self._exchange.counters.by_name())

    async def close(self) -> None:
        """Let go of the port; what was under way is lost."""
        self._closed = True
        self._trouble = "closed"
        if self._port is not None:
            self._put_away(self._port, "the line is closed")
        self._stop_timer()
        try:
            async with asyncio.timeout(CLOSING_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("%s does not close; it is left as it is", self._name)

    # The port

    def _open(self) -> None:
        self._timer = None
        self._aside(self._attempt, self._opened)

    def _attempt(self) -> SerialPort | LinkError:
        try:
            return open_port(self._name, self._baud)
        except LinkError as error:
            return error
        except Exception as error:
            # Whatever a driver throws, the thread must come back, or the port would never be tried again.
            return LinkError(f"{self._name} cannot be opened: {error}")

    def _opened(self, result: SerialPort | LinkError | None) -> None:
        if isinstance(result, SerialPort) and self._closed:
            self._aside(result.close, self._is_put_away)
        elif isinstance(result, SerialPort):
            self._port, self._failed = result, False
            self._reopen_wait = FIRST_REOPEN
            self._exchange.connect(self._clock.now())
            self._begins_to_call()
            self._loop.add_reader(result.fileno(), self._readable)
            self._turn()
        elif not self._closed:
            self._trouble, self._failed = str(result), True
            self._outage()
            self._reopen_later()

    def _reopen_later(self) -> None:
        wait, self._reopen_wait = self._reopen_wait, min(2 * self._reopen_wait, LONGEST_REOPEN)
        self._stop_timer()
        self._timer = self._loop.call_later(wait / SECOND, self._open)

    def _lose(self, trouble: str) -> None:
        """The port is good for nothing any more: put it away, and open it again."""
        if self._port is not None:
            self._trouble, self._failed = trouble, True
            self._put_away(self._port, "the port is gone")
            self._outage()

    def _put_away(self, port: SerialPort, reason: str) -> None:
        self._stop_timer()
        self._loop.remove_reader(port.fileno())
        self._loop.remove_writer(port.fileno())
        self._port, self._unwritten, self._stuck_at = None, b"", 0
        self._aside(port.close, self._is_put_away)
        self._tell(self._exchange.disconnect(reason))

    def _is_put_away(self, _: object) -> None:
        # Not earlier: as long as we hold it for us alone, nobody can open it, we least of all.
        if not self._closed:
            self._reopen_later()

    def _aside(
        self,
        work: Callable[[], SerialPort | LinkError | None],
        then: Callable[[SerialPort | LinkError | None], None],
    ) -> None:
        """Do something with the port on a thread, and go on with what came of it on the loop."""
        self._working += 1
        self._idle.clear()

        def done(result: SerialPort | LinkError | None) -> None:
            then(result)
            self._working -= 1
            if not self._working:
                self._idle.set()

        def run() -> None:
            result = work()
            try:
                self._loop.call_soon_threadsafe(done, result)
            except RuntimeError:
                # The loop is closed: nobody is left who could use it.
                if isinstance(result, SerialPort):
                    result.close()

        # A daemon: a driver that never comes back must not keep the process from ending.
        threading.Thread(target=run, name="heek-serial", daemon=True).start()

    # Turns

    def _readable(self) -> None:
        if self._port is None:
            return
        try:
            data = self._port.read()
        except OSError:
            self._lose(f"port missing: {self._name} went away; plug it in again")
            return
        if data is not None:
            self._tell(self._exchange.receive(data, self._clock.now()))
            self._turn()

    def _writable(self) -> None:
        data, self._unwritten = self._unwritten, b""
        self._write(data)
        if self._port is not None and not self._unwritten:
            self._loop.remove_writer(self._port.fileno())
            self._turn()

    def _ask_for_a_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self._loop.call_soon(self._asked_turn)

    def _asked_turn(self) -> None:
        self._turn_asked = False
        self._turn()

    def _on_timer(self) -> None:
        self._timer = None
        if self._unwritten and self._clock.now() >= self._stuck_at:
            self._lose(
                f"{self._name} takes no bytes any more; it is opened anew. "
                "If that does not help, unplug the adapter and plug it in again"
            )
        else:
            self._turn()

    def _turn(self) -> None:
        """Do what is due, write what there is to write, and set the timer to what is due next."""
        if self._port is None:
            return
        now = self._clock.now()
        self._tell(self._exchange.advance(now))
        while self._port is not None and not self._unwritten:
            data = self._exchange.to_write(now)
            if not data:
                break
            self._write(data)
        if self._port is None:
            return
        if not self.is_open:
            self._forget_what_is_long_ago(now)
            if now - self._calling_since >= NO_ANSWER:
                self._outage()
        due = self._stuck_at if self._unwritten else self._exchange.due()
        self._stop_timer()
        if due is not None:
            self._timer = self._loop.call_later(max(due - now, 0) / SECOND, self._on_timer)

    def _write(self, data: bytes) -> None:
        if self._port is None:
            return
        try:
            taken = self._port.write(data)
        except OSError:
            self._lose(f"port missing: {self._name} went away; plug it in again")
            return
        rest = data[taken:]
        if rest and (taken or not self._stuck_at):
            self._stuck_at = self._clock.now() + STUCK
            self._loop.add_writer(self._port.fileno(), self._writable)
        if not rest:
            self._stuck_at = 0
        self._unwritten = rest

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What happens, and what it is called

    def _tell(self, happened: Iterable[Happening]) -> None:
        for each in happened:
            if isinstance(each, SessionOpened):
                if self._told:
                    log.info("the serial line on %s: %s answers again", self._name, self._far_end)
                self._told.clear()
            elif isinstance(each, SessionEnded):
                self._begins_to_call()
            elif isinstance(each, VersionsDiffer | WrongPeer):
                self._outage()
            self._on_happening(each)

    def _begins_to_call(self) -> None:
        self._calling_since = self._seen_at = self._clock.now()
        self._seen_before = self._seen_lately = self._seen()

    def _forget_what_is_long_ago(self, now: Instant) -> None:
        """Else what was mended would be told as the reason until somebody answers."""
        if now - self._seen_at >= RECENT:
            self._seen_at = now
            self._seen_before, self._seen_lately = self._seen_lately, self._seen()

    def _outage(self) -> None:
        """Log what is wrong, unless that was logged of this outage already."""
        without_quote = self._words(quote=False)
        if without_quote not in self._told:
            self._told.add(without_quote)
            log.warning("the serial line on %s: %s", self._name, self._words())

    def _seen(self) -> tuple[int, int, int]:
        counters = self._exchange.counters
        return counters.bytes_in, counters.frames, counters.echoes

    def _words(self, *, quote: bool = True) -> str:
        """How it stands; `quote`: with what else is said on the line, which is different each time."""
        if self._port is None:
            return self._trouble
        if self.is_open:
            return "up"
        match self._exchange.mismatch:
            case VersionsDiffer(ours=ours, theirs=theirs):
                return (
                    f"{self._far_end} speaks versions {theirs[0]} to {theirs[1]} of the line's exchange, "
                    f"this one {ours[0]} to {ours[1]}; update the older of the two programs"
                )
            case WrongPeer(peer=peer):
                return (
                    f"the wrong end is on this line: {_described(peer)} instead of {self._far_end}; see "
                    "which adapter the port's name leads to (two of one kind: name them by "
                    "/dev/serial/by-path)"
                )
        if self._clock.now() - self._calling_since < NO_ANSWER:
            return f"calling {self._far_end}"
        return f"no answer from {self._far_end}{self._why_no_answer(quote=quote)}"

    def _why_no_answer(self, *, quote: bool) -> str:
        """What may be the reason, from what has come lately."""
        size, frames, echoes = (
            now - before for now, before in zip(self._seen(), self._seen_before, strict=True)
        )
        if not size:
            return (
                ": nothing at all comes in; is it running, is the cable there, do the two data lines cross?"
            )
        if echoes and echoes == frames:
            return (
                ": the line sends back what we say; disable the login console on it, or take the bridge off"
            )
        if frames:
            return ": it calls, and does not hear us; see to the wire from our TX to its RX"
        text = _text_in(self._exchange.unframed)
        if text is None:
            return f": only garbage comes, no frame; see that both ends have {self._baud} baud and one ground"
        return (
            f": something else talks on the line{f' (“{text}”)' if quote else ''}; disable the login console "
            "on it, and see that the port is the right one"
        )


def _described(peer: Identity) -> str:
    what = {Role.TABLE: "a table", Role.KI: "a KI's end"}.get(peer.role, "somebody")
    return f"{what} (“{peer.name}”)" if peer.name else what


def _text_in(data: bytes) -> str | None:
    """The last line of what a console, a modem manager or another device says; None if that is no text."""
    readable = sum(0x20 <= byte < 0x7F or byte in b"\r\n\t" for byte in data)
    if len(data) < LEAST_TEXT or readable < 0.9 * len(data):
        return None
    lines = [line.strip() for line in data.decode("ascii", "ignore").splitlines() if line.strip()]
    return "".join(each for each in lines[-1] if each.isprintable())[:MOST_QUOTED] if lines else None
