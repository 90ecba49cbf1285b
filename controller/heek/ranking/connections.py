"""One connection of a table or a browser to the KI: what it may cost."""

from __future__ import annotations

from typing import Any, Final

from heek.serving.connections import BoundedConnection, Bounds

HEAD_S: Final = 10.0
MOST_HEAD_BYTES: Final = 64 * 1024
"""Of one head; a body has a bound of its own in the application, which reads it piece by piece."""

BUFFER_BYTES: Final = 16 * 1024
KERNEL_BUFFER_BYTES: Final = 64 * 1024
GONE_MS: Final = 20_000


class Connection(BoundedConnection):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0

    def bounds(self) -> Bounds:
        return Bounds(HEAD_S, BUFFER_BYTES, KERNEL_BUFFER_BYTES, GONE_MS)

    def takes(self, size: int) -> bool:
        if not self.in_head:
            return True
        # What came before counts: the piece that ends a head may begin a body.
        before, self._head_bytes = self._head_bytes, self._head_bytes + size
        return before <= MOST_HEAD_BYTES

    def head_begins(self) -> None:
        self._head_bytes = 0
        super().head_begins()
