"""What a match record costs: to encode, to seal, to verify and read, and to carry in a file.

The records are those of whole matches of five, as a table makes them. Beside each figure stands the floor
that nobody gets below: the same values as JSON by the fastest library there is, and Ed25519 by itself with a
key that is kept.
"""

from __future__ import annotations

import io
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
from nacl.signing import SigningKey, VerifyKey

from heek.by_hand import export, exportable
from heek.journal import read_journal
from heek.ki import export_file
from heek.ki.envelope import RECORD_CONTEXT, public_key, seal, verify_record
from heek.ki.record import Record, decode_record, encode_record
from heek.ki.result import result_json
from heek.ki.table_key import table_key
from heek.kinds import KINDS, SEATS
from tests.bench.figures import Figure, Spread
from tests.cli.kept_table import keep, result_of
from tests.ranking.records import ANN, BEN, CLEO, DAN, EVE, FakeTable

ROUNDS: Final = 12
"""Of a match of five, about the mean."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Records a second and bytes of each; takes about 15 s."""
    with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder:
        return _measured(Path(folder), quick=quick)


def _measured(folder: Path, *, quick: bool) -> list[Figure]:
    runs, count = (2, 50) if quick else (7, 2000)
    table = FakeTable()
    records = _records(table, count)
    encoded = [encode_record(each) for each in records]
    envelopes = [seal(each, table.seed) for each in encoded]
    jsons = [result_json(each) for each in records]
    public = public_key(table.seed)
    signing, verifying = SigningKey(table.seed), VerifyKey(public)
    found: dict[str, list[float]] = {}

    def rate(name: str, act: Callable[[], object]) -> None:
        began = time.perf_counter()
        act()
        found.setdefault(name, []).append(count / (time.perf_counter() - began))

    keep(folder / "state", map(result_of, envelopes))
    key = table_key(folder / "state", lambda: table.seed)
    file = io.BytesIO()

    def carry() -> None:
        file.seek(0)
        with read_journal(folder / "state") as journal:
            export(journal, exportable(journal, key.id, everything=False), key, "Table 1", file.write)

    def survey() -> None:
        file.seek(0)
        export_file.survey(file)

    for _ in range(runs):
        rate("encoded", lambda: [encode_record(each) for each in records])
        rate("json", lambda: [result_json(each) for each in records])
        rate("sealed", lambda: [seal(each, table.seed) for each in encoded])
        rate("signed", lambda: [signing.sign(RECORD_CONTEXT + each) for each in encoded])
        rate("verified", lambda: [verify_record(each, public) for each in envelopes])
        rate(
            "checked",
            lambda: [verifying.verify(RECORD_CONTEXT + each.record, each.signature) for each in envelopes],
        )
        rate("read", lambda: [decode_record(each) for each in encoded])
        rate("parsed", lambda: [msgspec.json.decode(each) for each in jsons])
        rate("exported", carry)
        rate("surveyed", survey)
    spread = {name: Spread.of(rates) for name, rates in found.items()}
    return [
        Figure(
            "records_encoded",
            "a match's record encoded",
            "/s",
            spread["encoded"],
            "/s as JSON by msgspec",
            spread["json"],
            note=f"deterministic CBOR, {ROUNDS} rounds of five, checked on the way",
        ),
        Figure(
            "record_bytes",
            "a record in its envelope",
            "B",
            Spread.of([sum(len(each.encode()) for each in envelopes) / count]),
            "B of the same as JSON, unsigned",
            Spread.of([sum(map(len, jsons)) / count]),
        ),
        Figure(
            "records_sealed",
            "records sealed",
            "/s",
            spread["sealed"],
            "/s signed with a key that is kept",
            spread["signed"],
        ),
        Figure(
            "records_verified",
            "envelopes verified",
            "/s",
            spread["verified"],
            "/s by PyNaCl alone",
            spread["checked"],
        ),
        Figure(
            "records_read",
            "records read, every field looked at",
            "/s",
            spread["read"],
            "/s JSON parsed by msgspec, nothing looked at",
            spread["parsed"],
            note="with the proof that the bytes are the one encoding",
        ),
        Figure(
            "records_exported",
            "records exported by hand",
            "/s",
            spread["exported"],
            note="out of a journal into a file in memory, each sealed",
        ),
        Figure(
            "records_surveyed", "an export looked through, before it is imported", "/s", spread["surveyed"]
        ),
    ]


def _records(table: FakeTable, count: int) -> list[Record]:
    """Matches of five with as many rounds as are usual."""
    rng = random.Random(5)
    made = []
    for _ in range(count):
        record = table.record({ANN: 1, BEN: 1, CLEO: 2, DAN: 1, EVE: 3}, BEN)
        rounds = tuple({seat: rng.choice(KINDS) for seat in SEATS} for _ in range(ROUNDS))
        match = uuid.UUID(bytes=rng.randbytes(16), version=4).bytes
        made.append(replace(record, rounds=rounds, match=match, prev=rng.randbytes(32)))
    return made
