"""A second Ed25519, written from RFC 8032 alone, to hold the library's against; slow, and only for tests.

The curve is -x² + y² = 1 + d x² y² over the integers modulo P. A point is kept as (X, Y, Z, T) with x = X/Z,
y = Y/Z and T = X Y / Z, so that to add two takes no division.
"""

from __future__ import annotations

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def add(one: Point, other: Point) -> Point:
    """The sum of two points (RFC 8032, 5.1.4)."""
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * D * t1 * t2 % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number: int, point: Point) -> Point:
    """The point so many times."""
    total = NEUTRAL
    while number:
        if number & 1:
            total = add(total, point)
        point = add(point, point)
        number >>= 1
    return total


def recovered_x(y: int, odd: int) -> int | None:
    """The x of a point with this y, of the two the odd or the even one; None: there is none (5.1.3)."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and odd):
        return None
    return P - x if x & 1 != odd else x


BASE_Y = 4 * pow(5, -1, P) % P
BASE_X = recovered_x(BASE_Y, 0)
assert BASE_X is not None
BASE: Point = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def packed(point: Point) -> bytes:
    """A point as 32 bytes."""
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")


def unpacked(data: bytes) -> Point | None:
    """The point of 32 bytes; None: there is none."""
    number = int.from_bytes(data, "little")
    y = number & (1 << 255) - 1
    x = recovered_x(y, number >> 255)
    return None if x is None else (x, y, 1, x * y % P)


def public_key(seed: bytes) -> bytes:
    """The public key (32 bytes) of a seed (32 bytes)."""
    return packed(times(_secret(seed)[0], BASE))


def sign(message: bytes, seed: bytes) -> bytes:
    """The signature (64 bytes) of a message (5.1.6)."""
    secret, prefix = _secret(seed)
    once = _hashed(prefix + message)
    point = packed(times(once, BASE))
    challenge = _hashed(point + public_key(seed) + message)
    return point + ((once + challenge * secret) % ORDER).to_bytes(32, "little")


def verify(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the holder of the public key signed the message (5.1.7)."""
    key, point = unpacked(public), unpacked(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if key is None or point is None or len(signature) != 64 or number >= ORDER:
        return False
    challenge = _hashed(signature[:32] + public + message)
    return packed(times(number, BASE)) == packed(add(point, times(challenge, key)))


def _secret(seed: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(seed).digest()
    secret = int.from_bytes(digest[:32], "little")
    return secret & (1 << 254) - 8 | 1 << 254, digest[32:]


def _hashed(data: bytes) -> int:
    return int.from_bytes(hashlib.sha512(data).digest(), "little") % ORDER
