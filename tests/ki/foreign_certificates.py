"""Certificates that are not a KI's, or not like those that it makes, and servers' settings with them."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def made(
    key: Any,
    algorithm: Any,
    extension: x509.ExtensionType | None = None,
    name: x509.Name | None = None,
    since: datetime.datetime = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
) -> bytes:
    """A certificate of this key, signed by itself, valid for a day; as DER."""
    name = name or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "login.example")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(since)
        .not_valid_after(since + DAY)
    )
    if extension is not None:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.DER)


def serving_with(folder: Path, key: Any, der: bytes) -> ssl.SSLContext:
    """A server's settings with that certificate."""
    file = folder / "foreign.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + ssl.DER_cert_to_PEM_cert(der).encode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
