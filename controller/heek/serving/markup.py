"""HTML in which no text can become markup: elements are made by calls, and every text is escaped there.

Only `Markup` is taken as it is, and only these functions make it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias

VOID: Final = frozenset({"br", "hr", "img", "link", "meta"})
"""Elements without content and end."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content: TypeAlias = str | int | None
"""What stands in an element: markup as it is, other text and numbers escaped, None as nothing."""


def element(name: str, /, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """One element with its attributes and content.

    `class_` and `for_` lose their underscore, any other underscore becomes a hyphen. An attribute that is
    None or False is left out, one that is True stands without a value. Raises ValueError for content in an
    element that has none.
    """
    opened = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        named = key.rstrip("_").replace("_", "-")
        opened.append(named if value is True else f'{named}="{escape(str(value))}"')
    start = f"<{' '.join(opened)}>"
    if name in VOID:
        if content:
            raise ValueError(f"<{name}> has no content")
        return Markup(start)
    return Markup(f"{start}{joined(content)}</{name}>")


def joined(content: Iterable[Content]) -> Markup:
    """Several pieces of content, one after the other."""
    return Markup("".join(_text(each) for each in content))


def _text(content: Content) -> str:
    if content is None:
        return ""
    return content if isinstance(content, Markup) else escape(str(content))
