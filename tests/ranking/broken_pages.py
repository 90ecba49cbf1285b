"""Pages of a ledger's file that a card has lost while the KI runs on it."""

from __future__ import annotations

from collections.abc import Callable

from heek.ranking.store import Store

PAGE = 4096


def break_page(store: Store, table: str, *, leaf: bool = False) -> None:
    """Overwrite the first page of a table, or the last one of its rows, behind the open KI's back."""
    with store.reader.begin() as connection:
        (number,) = connection.exec_driver_sql(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).one()
    _overwrite(store, lambda data: _last_child(data, number) if leaf else number)


def break_page_with(store: Store, content: bytes) -> None:
    """Overwrite the page on which these bytes begin; they stand once in the file."""

    def find(data: bytes) -> int:
        assert data.count(content) == 1
        return data.index(content) // PAGE + 1

    _overwrite(store, find)


def _overwrite(store: Store, find: Callable[[bytes], int]) -> None:
    store.empty_log()
    # What SQLite has in memory would hide it.
    store.writer.dispose()
    store.reader.dispose()
    data = bytearray(store.file.read_bytes())
    number = find(bytes(data))
    data[(number - 1) * PAGE : number * PAGE] = b"\xa5" * PAGE
    store.file.write_bytes(data)


def _last_child(data: bytes, number: int) -> int:
    """The rightmost leaf below a page that has leaves (the file format's interior table page, 0x05)."""
    start = (number - 1) * PAGE
    while data[start] == 0x05:
        number = int.from_bytes(data[start + 8 : start + 12], "big")
        start = (number - 1) * PAGE
    assert data[start] == 0x0D
    return number
