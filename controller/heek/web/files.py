"""The page's own files, from the package, with their types and tags.

Only names that are plain words pass, so no path can lead out of the folder. A file is read again when it
has changed, and a browser asks each time whether it has: a page of yesterday against a table of today would
be a fault that nobody can see.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
FOLDER: Final = Path(__file__).parent / "static"

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,3}")


@dataclass(frozen=True, slots=True)
class PageFile:
    """What a browser gets: bytes, their type, and a tag that changes with them."""

    body: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, body: bytes, kind: str) -> PageFile:
        """With the tag that belongs to the body."""
        return cls(body, kind, f'"{hashlib.sha256(body).hexdigest()[:24]}"')


class PageFiles:
    """The files of one folder, kept as long as they do not change."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._kept: dict[str, tuple[tuple[int, int], PageFile]] = {}

    def get(self, name: str) -> PageFile | None:
        """The file of that name, with `/` between folder and file; None: there is none to be had."""
        path = self._folder / name
        kind = TYPES.get(path.suffix)
        if kind is None or not _NAME.fullmatch(name):
            return None
        try:
            stat = path.stat()
            mark = (stat.st_mtime_ns, stat.st_size)
            kept = self._kept.get(name)
            if kept is None or kept[0] != mark:
                kept = (mark, PageFile.of(path.read_bytes(), kind))
                self._kept[name] = kept
        except OSError:
            return None
        return kept[1]
