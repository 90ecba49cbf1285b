"""`python -m tests.bench`: measure everything, print a table for people, write JSON for comparison.

Every figure is taken several times and given as the median with the least and the most; what is compared is
measured by turns in the same run. On a machine that does other things at the same time the medians move, so
the load is written down with them. An aim that is missed is shown, and makes no error: this measures, it
does not judge.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.bench import edges, machine, panel, records, reports, rules, running, serial_line, virtual
from tests.bench.figures import Figure, table

Part = Callable[[argparse.Namespace], list[Figure]]

PARTS: Final[dict[str, Part]] = {
    "edges": lambda asked: edges.measure(quick=asked.quick),
    "rules": lambda asked: rules.measure(quick=asked.quick),
    "records": lambda asked: records.measure(quick=asked.quick),
    "panel": lambda asked: panel.measure(quick=asked.quick),
    "serial": lambda asked: serial_line.measure(quick=asked.quick),
    "virtual": lambda asked: virtual.measure(quick=asked.quick, full=asked.full),
    "running": lambda asked: running.measure(quick=asked.quick),
    "reports": lambda asked: reports.measure(quick=asked.quick),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="measure the table")
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean little")
    parser.add_argument("--full", action="store_true", help="play all thousand matches")
    parser.add_argument("--only", choices=PARTS, action="append", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=machine.ROOT / "build" / "bench.json", metavar="FILE")
    asked = parser.parse_args(argv)
    known = machine.facts()
    print(machine.summary(known), file=sys.stderr)
    figures: list[Figure] = []
    for name in asked.only or PARTS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += PARTS[name](asked)
    print(f"\n{table(figures)}")
    if asked.quick:
        print("--quick: too few and too short runs to go by\n")
    body = {"machine": known, "quick": asked.quick, "figures": {each.key: each.as_json() for each in figures}}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {asked.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
