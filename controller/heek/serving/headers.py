"""The headers that every answer of ours carries: what a browser may do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from starlette.types import Message, Send

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

_NO_STORE: Final = (b"cache-control", b"no-store")


def safe_headers(policy: str) -> Headers:
    """A content security policy, no guessing of types, no word of ours to others, no frame around us."""
    return (
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"x-frame-options", b"DENY"),
    )


def with_headers(send: Send, headers: Headers) -> Send:
    """`send`, with these headers in every answer, and no-store in each that says nothing of caching."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            kept = any(name.lower() == b"cache-control" for name, _ in given)
            message = {**message, "headers": [*given, *headers, *([] if kept else [_NO_STORE])]}
        await send(message)

    return send_with_headers
