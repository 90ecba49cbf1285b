"""The KI's TLS: a certificate of its own Ed25519 key, so that the key a table has pinned is all it needs.

Nobody signs the certificate but the key itself, and it holds for ever: a table looks at the key alone, and
may think that it is 1970. The same seed gives the same certificate, so that nothing has to be kept. The
library `cryptography` is imported only here, and only where TLS is served.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMON_NAME = "heek KI"


def certificate(seed: bytes) -> tuple[bytes, bytes]:
    """Certificate and private key of the service's seed (32 bytes), both as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509.oid import NameOID

    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key()
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)])
    # RFC 5280, 4.1.2.5: this is how a certificate says that it has no end.
    never = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(int.from_bytes(hashlib.sha256(raw).digest()[:15], "big") | 1)
        .not_valid_before(datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(never)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, None)
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM), secret


def tls(seed: bytes) -> ssl.SSLContext:
    """What a server of the service's seed (32 bytes) listens with: TLS 1.3 alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Each question has a connection of its own: tickets for later ones would be made for nobody.
    context.num_tickets = 0
    with _readable(b"".join(reversed(certificate(seed)))) as file:
        context.load_cert_chain(file)
    return context


@contextmanager
def _readable(secret: bytes) -> Iterator[str]:
    """A file with that in it while it is read, in memory where the system can: OpenSSL wants a path."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        handle = os.memfd_create("heek-tls", os.MFD_CLOEXEC)
        try:
            os.write(handle, secret)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    with tempfile.TemporaryDirectory(prefix="heek-tls-") as folder:
        file = Path(folder) / "tls.pem"
        file.touch(0o600)
        file.write_bytes(secret)
        yield str(file)
