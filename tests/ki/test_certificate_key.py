"""The one thing that a table reads of a certificate: its key, by its place and by nothing else."""

from __future__ import annotations

import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given
from hypothesis import strategies as st

from heek.ki.certificate_key import ed25519_key
from heek.ki.envelope import public_key
from heek.ranking.certificate import certificate
from tests.ki.foreign_certificates import made

SEEDS = st.binary(min_size=32, max_size=32)
SEED = bytes(range(32))


def der(seed: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate(seed)[0].decode())


@given(SEEDS)
def test_the_key_of_a_kis_certificate_is_found(seed: bytes) -> None:
    """It is the very key that a table pins, and the same seed makes the same certificate."""
    assert ed25519_key(der(seed)) == public_key(seed)
    assert certificate(seed) == certificate(seed)


def test_a_key_of_another_kind_is_none() -> None:
    """A portal's certificate has no key of a KI."""
    assert ed25519_key(made(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())) is None


def test_somebody_elses_key_in_an_extension_is_not_taken() -> None:
    """Whoever writes the KI's key into their own certificate is told by the key that they hold."""
    theirs = Ed25519PrivateKey.from_private_bytes(bytes(32))
    wanted = Ed25519PrivateKey.from_private_bytes(SEED).public_key()
    spki = wanted.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    lying = made(
        theirs,
        None,
        x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), spki),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "heek KI" * 9)]),
    )
    assert spki in lying
    assert ed25519_key(lying) == public_key(bytes(32))


@given(st.data())
def test_what_is_cut_or_changed_gives_no_exception(data: st.DataObject) -> None:
    """Cut anywhere it has no key; with any byte changed it has one or none."""
    whole = der(SEED)
    at = data.draw(st.integers(0, len(whole) - 1))
    assert ed25519_key(whole[:at]) is None
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    found = ed25519_key(bytes(changed))
    assert found is None or len(found) == 32


@given(st.binary(max_size=400))
def test_any_bytes_are_a_key_or_none(rubbish: bytes) -> None:
    """Whatever a server shows instead of a certificate."""
    assert ed25519_key(rubbish) is None
