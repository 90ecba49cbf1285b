"""The file that carries a table's signed records to the KI by hand: as a whole the map that the
specification's "By hand" needs, read and written an envelope at a time.

It is one deterministic CBOR map (RFC 8949, 4.2), so its keys come shortest first: `envelopes`, the list of
them as they would stand in a batch; `heek-export` 1; `introduction`, the body by which the table shows its
public key and its name, so that a KI which has never heard of the table can be told of it first.

A file on a stick may be cut or changed. What holds it together is looked at before anything is sent
(`survey`). A change within a record shows in the signature of that record alone, and the others count.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from heek.errors import RecordError
from heek.ki.answers import read_introduction
from heek.ki.cbor_stream import BYTES, LIST, MAP, WHOLE, CborStream, Source, head, packed_bytes, packed_text
from heek.ki.envelope import KEY_ID_BYTES, VERSION, Envelope, key_id, verify_introduction
from heek.ki.record import MOST_BYTES

LAYOUT: Final = 1
MOST_ENVELOPES: Final = 10_000_000
"""A table that plays day and night for a century has fewer matches."""
MOST_INTRODUCTION: Final = 1024

_ENVELOPES: Final = "envelopes"
_LAYOUT: Final = "heek-export"
_INTRODUCTION: Final = "introduction"
_BEGINNING: Final = head(MAP, 3) + packed_text(_ENVELOPES)


@dataclass(frozen=True, slots=True)
class Export:
    """What stands in a file beside its envelopes, all of it looked at."""

    envelopes: int
    introduction: bytes
    """The body of the request by which the table introduces itself."""
    public: bytes
    name: str

    @property
    def table(self) -> bytes:
        """Key id of the table."""
        return key_id(self.public)


def write_export(
    write: Callable[[bytes], object], count: int, envelopes: Iterable[Envelope], introduction: bytes
) -> None:
    """Write a file of `count` envelopes, one after the other; raises ValueError if they are not as many."""
    write(_BEGINNING + head(LIST, count))
    written = 0
    for each in envelopes:
        write(
            head(LIST, 4)
            + head(WHOLE, VERSION)
            + packed_bytes(each.key_id)
            + packed_bytes(each.record)
            + packed_bytes(each.signature)
        )
        written += 1
    if written != count:
        raise ValueError(f"{written} envelopes came where {count} were announced")
    write(packed_text(_LAYOUT) + head(WHOLE, LAYOUT) + packed_text(_INTRODUCTION))
    write(packed_bytes(introduction))


def survey(source: Source) -> Export:
    """Read a whole file and keep nothing but its ends; raises RecordError if it is no sound export.

    The signatures of the records are not looked at, that of the introduction is.
    """
    walk = _walk(source)
    count = 0
    while True:
        try:
            next(walk)
        except StopIteration as ended:
            introduction: bytes = ended.value
            break
        except RecordError as error:
            raise RecordError(f"{error} (after {count} sound records)" if count else str(error)) from None
        count += 1
    try:
        public, name, signature = read_introduction(introduction)
    except RecordError:
        raise RecordError("is damaged: its introduction is none") from None
    if not verify_introduction(public, name, signature):
        raise RecordError("is damaged: the signature of its introduction is wrong")
    return Export(count, introduction, public, name)


def envelopes(source: Source) -> Iterator[Envelope]:
    """The envelopes of a file from its beginning, one at a time; raises RecordError as `survey` does."""
    yield from _walk(source)


def _walk(source: Source) -> Generator[Envelope, None, bytes]:
    """All envelopes, and the introduction as what it returns."""
    stream = CborStream(source)
    if _begins_otherwise(stream):
        raise RecordError("is no file that heek journal export wrote")
    for _ in range(stream.head(LIST, MOST_ENVELOPES)):
        yield _envelope(stream)
    stream.text(_LAYOUT)
    layout = stream.head(WHOLE, (1 << 64) - 1)
    if layout != LAYOUT:
        raise RecordError(
            f"was written by another heek (layout {layout}, this one reads {LAYOUT}); use that version"
        )
    stream.text(_INTRODUCTION)
    introduction = stream.bytes(MOST_INTRODUCTION)
    stream.end()
    return introduction


def _begins_otherwise(stream: CborStream) -> bool:
    """Whether this is another file altogether, and not one of ours that is damaged."""
    try:
        return stream.take(len(_BEGINNING)) != _BEGINNING
    except RecordError:
        return True


def _envelope(stream: CborStream) -> Envelope:
    if (stream.head(LIST, 4), stream.head(WHOLE, VERSION)) != (4, VERSION):
        raise RecordError("is damaged: an envelope is none")
    return Envelope(_exactly(stream, KEY_ID_BYTES), stream.bytes(MOST_BYTES), _exactly(stream, 64))


def _exactly(stream: CborStream, size: int) -> bytes:
    if stream.head(BYTES, size) != size:
        raise RecordError("is damaged: an envelope is none")
    return stream.take(size)
