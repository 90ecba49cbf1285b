"""What a KI says of itself in the network, as a pure function of texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heek.ki.announcement import MOST_NAME, Announcement, encode_announcement, read_announcement

NAMES = st.text(min_size=1, max_size=MOST_NAME).filter(str.isprintable)
ANNOUNCED = st.builds(
    Announcement, st.binary(min_size=8, max_size=8), NAMES, st.none() | st.integers(1, 65535)
)
TEXTS = st.dictionaries(
    st.sampled_from([b"v", b"key", b"name", b"tls"]) | st.binary(max_size=5),
    st.none() | st.binary(max_size=40) | st.sampled_from([b"1", b"0123456789abcdef", b"70000", b"KI"]),
)


@given(ANNOUNCED)
def test_what_is_announced_reads_back(announced: Announcement) -> None:
    """Whatever a KI says of itself is what a table reads."""
    text = {key.encode(): value.encode() for key, value in encode_announcement(announced).items()}
    assert read_announcement(text) == announced


@given(TEXTS)
def test_any_record_is_an_announcement_or_none(text: dict[bytes, bytes | None]) -> None:
    """Anybody may announce anything: only a name that can be shown, a key id and a port come of it."""
    read = read_announcement(text)
    if read is not None:
        assert len(read.key_id) == 8
        assert 0 < len(read.name) <= MOST_NAME
        assert read.name.isprintable()
        assert read.tls_port is None or 0 < read.tls_port < 65536


def test_another_version_is_nobody() -> None:
    """A KI that speaks of itself in a way that this table does not know is passed by."""
    assert read_announcement({b"v": b"2", b"key": b"0123456789abcdef", b"name": b"KI"}) is None
