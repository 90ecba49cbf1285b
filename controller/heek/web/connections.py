"""One connection of a browser to the table's page: what it may cost."""

from __future__ import annotations

from typing import Any, Final

from heek.serving.connections import BoundedConnection, Bounds

HEAD_S: Final = 10.0
MOST_BYTES: Final = 64 * 1024
"""Of one head, or of what follows one; bodies have a far smaller bound of their own in the application."""

BUFFER_BYTES: Final = 16 * 1024
KERNEL_BUFFER_BYTES: Final = 32 * 1024
GONE_MS: Final = 30_000


class Connection(BoundedConnection):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bytes = 0
        """Received since the last head was complete: a body, and the next head."""

    def bounds(self) -> Bounds:
        return Bounds(HEAD_S, BUFFER_BYTES, KERNEL_BUFFER_BYTES, GONE_MS)

    def takes(self, size: int) -> bool:
        before, self._bytes = self._bytes, self._bytes + size
        return before <= MOST_BYTES

    def head_ends(self) -> None:
        self._bytes = 0
        super().head_ends()
