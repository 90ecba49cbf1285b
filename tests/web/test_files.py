"""The page's files: what is in the folder under a plain name, with its type, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heek.web.files import FOLDER, TYPES, PageFile, PageFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with some files, and a secret beside it."""
    (tmp_path / "secret.js").write_text("secret")
    inside = tmp_path / "static"
    (inside / "more").mkdir(parents=True)
    (inside / "table.js").write_text("let a;")
    (inside / "more" / "part.css").write_text("a{}")
    (inside / "notes.txt").write_text("not for browsers")
    (inside / ".hidden.js").write_text("hidden")
    (inside / "folder.js").mkdir()
    return inside


def test_a_file_has_its_type_and_a_tag(folder: Path) -> None:
    """The types are ours, not those of whatever machine it runs on."""
    files = PageFiles(folder)
    found = files.get("table.js")
    assert found == PageFile.of(b"let a;", "text/javascript; charset=utf-8")
    assert found.tag.startswith('"')
    below = files.get("more/part.css")
    assert below is not None
    assert below.kind == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "missing.js",
        "notes.txt",
        ".hidden.js",
        "folder.js",
        "../secret.js",
        "more/../../secret.js",
        "..\\secret.js",
        "/etc/hostname",
        "more//part.css",
        "table.js/",
        "table.js\n",
        "table.js\0",
        "a" * 5000 + ".js",
    ],
)
def test_what_is_not_a_file_of_the_page(folder: Path, name: str) -> None:
    """Nothing outside the folder, nothing hidden, nothing of an unknown type, whatever the name is."""
    assert PageFiles(folder).get(name) is None


def test_an_absolute_name_leads_nowhere(folder: Path) -> None:
    """A name that is a whole path is not followed, though there is a file of a known type at its end."""
    assert PageFiles(folder).get(str(folder.parent / "secret.js")) is None


def test_a_file_that_changed_is_read_again(folder: Path) -> None:
    """Whoever works on the page sees it anew, under another tag; an unchanged file is kept."""
    files = PageFiles(folder)
    first = files.get("table.js")
    assert files.get("table.js") is first
    (folder / "table.js").write_text("let b;")
    os.utime(folder / "table.js", ns=(1, 1))
    second = files.get("table.js")
    assert second is not None
    assert first is not None
    assert (second.body, second.tag != first.tag) == (b"let b;", True)
    (folder / "table.js").unlink()
    assert files.get("table.js") is None


def test_every_file_of_the_page_can_be_had() -> None:
    """What lies in the page's folder is all of a known type and under a plain name."""
    names = [path.name for path in FOLDER.iterdir() if path.is_file()]
    assert "index.html" in names
    files = PageFiles()
    assert [name for name in names if files.get(name) is None] == []
    assert {Path(name).suffix for name in names} <= set(TYPES)
