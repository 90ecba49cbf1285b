"""KI numbers: eight digits, random, the last one a Luhn check digit (the specification, "People")."""

from __future__ import annotations

import re
from typing import Final

DIGITS: Final = 8


def is_ki_number(text: object) -> bool:
    """Is it the text of eight digits of which the last one is right?"""
    return (
        isinstance(text, str)
        and re.fullmatch(r"[0-9]{8}", text) is not None
        and check_digit(text[:-1]) == text[-1]
    )


def ki_number(seven: int) -> str:
    """The KI number that begins with these seven digits (0 to 9,999,999); raises ValueError beyond."""
    if not 0 <= seven < 10**7:
        raise ValueError(f"{seven} has not seven digits")
    body = f"{seven:07d}"
    return body + check_digit(body)


def check_digit(digits: str) -> str:
    """The Luhn digit to put behind `digits`."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit)
        if place % 2 == 0:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return str(-total % 10)
