"""What log and page say of the stamps: whose they are, and how far off if they are not the kernel's."""

from __future__ import annotations

import pytest

from heek.cli.table_process import stamps_words
from heek.config import from_text
from heek.doctor import machine

GPIO = '[stations]\nbackend = "gpio"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GPIO, "stamps by the kernel"),
        (GPIO + 'pin_factory = "rpigpio"\n', "stamps by callback, + 2.50 ms or more"),
        ('[stations]\nbackend = "mock"\n', "stamps by the table's own clock"),
    ],
)
def test_whose_stamps(monkeypatch: pytest.MonkeyPatch, text: str, words: str) -> None:
    """By backend; the error is the greatest of what was measured on this machine, here and now."""
    monkeypatch.setattr(machine, "callback_lateness", lambda _count: [100_000, 2_500_000, 300_000])
    assert stamps_words(from_text(text, "table.toml")) == words
