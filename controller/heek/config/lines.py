"""On which line of a TOML text each key stands.

The standard parser tells values but not places. This scanner walks over a text that the parser has
already accepted, so it checks nothing; it only has to step over strings, comments and brackets the
way TOML does. A place it cannot name is simply missing, and the message then goes without a line.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from typing import Final, TypeAlias

Place: TypeAlias = tuple[str | int, ...]
"""Keys, and positions from 0 in arrays: `("station", 1, "pen")`."""

_BLANK: Final = re.compile(r"[ \t]*")
_BETWEEN: Final = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def lines_of(text: str) -> dict[Place, int]:
    """The line, from 1, of every key and table heading of a TOML text; the first one where several."""
    scanner = _Scanner(text)
    # Where it loses its way, what was found so far is right all the same.
    with contextlib.suppress(_Lost, RecursionError):
        scanner.document()
    return scanner.found


class _Lost(Exception):
    """The text is not what the scanner expects there."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Place, int] = {}
        self._counted_to = 0
        self._line = 1
        self._lengths: dict[Place, int] = {}

    def document(self) -> None:
        heading: Place = ()
        while True:
            self._skip(_BETWEEN)
            if self.at >= len(self.text):
                return
            if self.text.startswith("[[", self.at):
                self.at += 2
                place = self._resolved(self._key())
                position = self._lengths.get(place, 0)
                self._lengths[place] = position + 1
                heading = (*place, position)
                self._note(heading, first=1)
                self._expect("]]")
            elif self.text.startswith("[", self.at):
                self.at += 1
                heading = self._resolved(self._key())
                self._note(heading, first=1)
                self._expect("]")
            else:
                self._pair(heading)

    def _pair(self, heading: Place) -> None:
        start = self.at
        place = (*heading, *self._key())
        end, self.at = self.at, start
        self._note(place, first=len(heading) + 1)
        self.at = end
        self._expect("=")
        self._skip(_BLANK)
        self._value(place)

    def _value(self, place: Place) -> None:
        opening = self.text[self.at : self.at + 1]
        if opening == "{":
            self.at += 1
            self._members(place, "}")
        elif opening == "[":
            self.at += 1
            self._members(place, "]")
        elif opening in ('"', "'"):
            self._skip(_STRING)
        else:
            self._skip(_SCALAR)

    def _members(self, place: Place, closing: str) -> None:
        position = 0
        while True:
            self._skip(_BETWEEN)
            if self.text.startswith(closing, self.at):
                self.at += 1
                return
            if self.at >= len(self.text):
                raise _Lost
            if closing == "}":
                self._pair(place)
            else:
                self._note((*place, position))
                self._value((*place, position))
                position += 1

    def _key(self) -> Place:
        """A key, dotted or not, quoted or not."""
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            if self.text[self.at : self.at + 1] in ('"', "'"):
                start = self.at
                self._skip(_STRING)
                parts.append(_unquoted(self.text[start : self.at]))
            else:
                start = self.at
                self._skip(_BARE)
                parts.append(self.text[start : self.at])
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def _resolved(self, keys: Place) -> Place:
        """The keys of a heading with the position of the newest element after each array of tables."""
        place: Place = ()
        for key in keys[:-1]:
            place = (*place, key)
            if place in self._lengths:
                place = (*place, self._lengths[place] - 1)
        return (*place, *keys[-1:])

    def _note(self, place: Place, first: int | None = None) -> None:
        """Remember the present line for `place`, and for its beginnings from `first` keys on."""
        self._line += self.text.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        for length in range(len(place) if first is None else first, len(place) + 1):
            self.found.setdefault(place[:length], self._line)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _Lost
        self.at = match.end()

    def _expect(self, mark: str) -> None:
        self._skip(_BLANK)
        if not self.text.startswith(mark, self.at):
            raise _Lost
        self.at += len(mark)


def _unquoted(key: str) -> str:
    if key.startswith("'"):
        return key[1:-1]
    value = tomllib.loads(f"key = {key}")["key"]
    return str(value)
