"""The receipt that goes back to the table by hand: what the KI answered to the records of an export.

One deterministic CBOR map (RFC 8949, 4.2), its keys shortest first: `table`, the key id of the table that
the records are of; `batches`, a list of [match ids one after the other, the KI's answer as it came];
`heek-receipt` 1.

An answer is signed by the service for the very question (`heek.ki.signed_answer`). The question need not be
carried back: it is the batch of these matches, which the table can make again from its own journal byte by
byte, since a record sealed again gives the same envelope. So a receipt acknowledges what this table has
signed, and nothing that somebody else sent under the same match ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from heek.errors import RecordError
from heek.ki.cbor_stream import LIST, MAP, WHOLE, CborStream, Source, head, packed_bytes, packed_text
from heek.ki.envelope import KEY_ID_BYTES, MOST_IN_BATCH
from heek.ki.link import MOST_ANSWER_BYTES

LAYOUT: Final = 1
MATCH_BYTES: Final = 16
MOST_BATCHES: Final = 10_000_000

_TABLE: Final = "table"
_BATCHES: Final = "batches"
_LAYOUT: Final = "heek-receipt"
_BEGINNING: Final = head(MAP, 3) + packed_text(_TABLE)


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """What was asked at once, by the ids of its matches (16 bytes each), and the answer's body."""

    matches: tuple[bytes, ...]
    answer: bytes

    def encode(self) -> bytes:
        """As it stands in a receipt."""
        return head(LIST, 2) + packed_bytes(b"".join(self.matches)) + packed_bytes(self.answer)


def write_receipt(
    write: Callable[[bytes], object], table: bytes, count: int, batches: Iterable[bytes]
) -> None:
    """Write a receipt for the table with this key id; `batches` are pieces of `count` encoded ones."""
    write(_BEGINNING + packed_bytes(table) + packed_text(_BATCHES) + head(LIST, count))
    for each in batches:
        write(each)
    write(packed_text(_LAYOUT) + head(WHOLE, LAYOUT))


def survey(source: Source) -> bytes:
    """Read a whole receipt: the key id of the table that it is for; raises RecordError if it is none."""
    stream = CborStream(source)
    table = _table(stream)
    for _ in _batches(stream):
        pass
    return table


def batches(source: Source) -> Iterator[AnsweredBatch]:
    """The batches of a receipt from its beginning, in their order; raises RecordError as `survey` does.

    That the answers are answers, and whose, is not looked at.
    """
    stream = CborStream(source)
    _table(stream)
    yield from _batches(stream)


def _table(stream: CborStream) -> bytes:
    try:
        foreign = stream.take(len(_BEGINNING)) != _BEGINNING
    except RecordError:
        foreign = True
    if foreign:
        raise RecordError("is no receipt that heek ki import wrote")
    table = stream.bytes(KEY_ID_BYTES)
    if len(table) != KEY_ID_BYTES:
        raise RecordError("is damaged: the table's key id is none")
    return table


def _batches(stream: CborStream) -> Iterator[AnsweredBatch]:
    stream.text(_BATCHES)
    for _ in range(stream.head(LIST, MOST_BATCHES)):
        if stream.head(LIST, 2) != 2:
            raise RecordError("is damaged: a batch is none")
        ids = stream.bytes(MOST_IN_BATCH * MATCH_BYTES)
        if len(ids) % MATCH_BYTES:
            raise RecordError("is damaged: a match id is cut")
        yield AnsweredBatch(
            tuple(ids[at : at + MATCH_BYTES] for at in range(0, len(ids), MATCH_BYTES)),
            stream.bytes(MOST_ANSWER_BYTES),
        )
    stream.text(_LAYOUT)
    layout = stream.head(WHOLE, (1 << 64) - 1)
    if layout != LAYOUT:
        raise RecordError(
            f"was written by another heek (layout {layout}, this one reads {LAYOUT}); use that version"
        )
    stream.end()
