"""A table that reports, without seats: `python -m ... STATE_DIR [URL]`, with journal, key and link.

Each line `match` on standard input is a match won, which is in the journal and waits before its id is said.
Every change of what the table knows of the KI is a line of JSON on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from heek.boot import this_boot
from heek.clock import RealClock
from heek.journal import Batch, JournalWriter
from heek.ki.discovery import Discovered
from heek.ki.http_link import HttpLink
from heek.ki.table_key import table_key
from heek.record_chain import RecordChain, bind_results
from heek.reporter import Reporter
from heek.reporting import Reporting
from tests.journal.scripts import entry, label
from tests.test_record_chain import a_result_of_guests


def say(told: dict[str, object]) -> None:
    """One line in one piece: two threads say something."""
    os.write(1, f"{json.dumps(told)}\n".encode())


async def main(state_dir: Path, url: str) -> None:
    """Report until standard input ends."""
    loop = asyncio.get_running_loop()
    clock, boot, incarnation = RealClock(), this_boot(), os.urandom(8)
    key = table_key(state_dir, lambda: os.urandom(32))
    journal = JournalWriter(state_dir, ThreadPoolExecutor(1), clock)
    newest = journal.ask(lambda kept: bind_results(kept, key)).result()
    chain = RecordChain(key, "Table 1", incarnation, boot, newest)
    link = HttpLink(url, clock=clock) if url else HttpLink(whereabouts=Discovered(), clock=clock)

    def changed() -> None:
        status = reporting.status
        told = {"state": status.state, "waiting": status.waiting, "why": status.reason}
        say(told | {"link": link.status().text, "claim": status.claim, "service": status.service})

    who = Reporter(journal, key, "Table 1", clock, lambda *_: None, chain.bind, incarnation, boot)
    reporting = Reporting(who, link, "http", most_bytes=100_000, on_change=changed)

    def won() -> None:
        seq = journal.ask(lambda kept: kept.last_seq()).result() + 1
        result = chain.add(replace(a_result_of_guests(), match=str(uuid.uuid4())), clock)
        won = entry(seq, "match_won", match=result.match)
        journal.submit(Batch((won,), True, b"{}", label(seq), (result,))).result()
        reporting.result_waits()
        say({"won": result.match})

    ended = asyncio.Event()

    def read() -> None:
        for line in sys.stdin:
            if line.strip() == "match":
                won()
        loop.call_soon_threadsafe(ended.set)

    reporting.start()
    threading.Thread(target=read, daemon=True).start()
    print("the table is there", flush=True)
    await ended.wait()
    await reporting.close()
    journal.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
