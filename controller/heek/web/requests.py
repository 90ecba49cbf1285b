"""What a browser may send, read strictly: of exactly one shape, or refused in one sentence."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from heek.errors import PageRefusal

MOST_BYTES = 4096

_SeatNumber = Annotated[int, msgspec.Meta(ge=1, le=5)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Hand = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
_Player = Annotated[str, msgspec.Meta(pattern="^[0-9]{8}$")]


class Contact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`POST /contacts`: a hand closes or opens a contact, or says that it still holds it."""

    seat: _SeatNumber
    button: str
    closed: bool
    hand: _Hand
    n: _Number
    at: float | None = None
    """The table's time, in seconds, at which the finger came down, as the page believes."""


class TakeSeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`POST /seat`: this phone plays that seat, or none."""

    seat: _SeatNumber | None


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that says all by its path."""


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`POST /seats/N/sign-in`: a KI number, or none for a new one."""

    player: _Player | None


class SwitchKi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`POST /ki`: start or stop the KI."""

    running: bool


_Shape = TypeVar("_Shape", bound=msgspec.Struct)


def read(body: bytes, shape: type[_Shape]) -> _Shape:
    """A body as one of the shapes above; raises PageRefusal (400) with what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise PageRefusal(400, f"this request is not what the table expects: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PageRefusal(400, "this request is not JSON: send an object as JSON in UTF-8") from None
