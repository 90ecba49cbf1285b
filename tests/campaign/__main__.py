"""The campaign: many seeded worlds, each judged; a failing one is made small, and told with how to replay it.

`python -m tests.campaign --worlds 10000` is all of it; `make test` runs a share with fixed seeds. Each seed
is a world of its own. `--seed N --worlds 1 --show` tells what happens in one, `--only 0-3,7` lets only these
of its acts happen, `--kinds cut,link` draws worlds with these kinds of fault alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

from tests.campaign.plan import FAULTS, Kind, Plan, draw_plan
from tests.campaign.world import faults_of

MOST_TRIALS: Final = 150
"""To make a failing plan small."""


def judge_seed(seed: int, kinds: Collection[Kind]) -> tuple[int, list[str], float, Counter[str]]:
    """The seed, what is wrong with its world, the seconds of CPU that it took, and what happened in it."""
    began = time.process_time()
    plan = draw_plan(seed, kinds)
    try:
        faults, world = faults_of(plan)
        seen = Counter(act.kind.value for act in plan.acts)
        seen["matches"] = len(world.history.played)
        seen["tables"] = len(world.tables)
    except Exception:
        faults, seen = [traceback.format_exc()], Counter()
    return seed, faults, time.process_time() - began, seen


def shrink(plan: Plan) -> Plan:
    """The same plan with as few acts as still fail, as far as a bounded search finds them."""
    acts = [act.number for act in plan.acts]
    size, trials = max(len(acts) // 2, 1), 0
    while trials < MOST_TRIALS:
        for start in range(0, len(acts), size):
            fewer = acts[:start] + acts[start + size :]
            trials += 1
            if faults_of(plan.only(fewer))[0]:
                acts = fewer
                break
        else:
            if size == 1:
                break
            size = max(size // 2, 1)
    return plan.only(acts)


def spans(numbers: Iterable[int]) -> str:
    """Numbers as people write them: 0-3,7."""
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def read_spans(text: str) -> frozenset[int]:
    """The numbers of `spans`; raises ValueError."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return frozenset(found)


def replay_line(plan: Plan, kinds: Collection[Kind]) -> str:
    """The command that lets this plan happen again."""
    drawn = "" if set(kinds) == set(FAULTS) else f" --kinds {','.join(sorted(kind.value for kind in kinds))}"
    only = spans(act.number for act in plan.acts)
    return f"python -m tests.campaign --seed {plan.seed} --worlds 1{drawn} --only '{only}' --show"


def main(argv: Sequence[str] | None = None) -> int:
    """Run many worlds on all cores; 1 if a rule was broken in any of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", default="", help="faults to draw from; empty: all")
    parser.add_argument("--only", help="acts that happen, by number; needs --worlds 1")
    parser.add_argument("--show", action="store_true", help="tell what happens; needs --worlds 1")
    parser.add_argument("--jobs", type=int, default=None, help="processes; one a core if left out")
    arguments = parser.parse_args(argv)
    kinds = [Kind(each) for each in filter(None, arguments.kinds.split(","))] or list(FAULTS)
    if arguments.only is not None or arguments.show:
        if arguments.worlds != 1:
            parser.error("--only and --show are for one world: --worlds 1")
        return _one(arguments.seed, kinds, arguments.only, show=arguments.show)
    return _many(range(arguments.seed, arguments.seed + arguments.worlds), kinds, arguments.jobs)


def _one(seed: int, kinds: Collection[Kind], only: str | None, *, show: bool) -> int:
    plan = draw_plan(seed, kinds)
    if only is not None:
        plan = plan.only(read_spans(only))
    faults, world = faults_of(plan)
    if show:
        print("\n".join(world.told))
    print("\n".join(faults) or "nothing is wrong")
    return 1 if faults else 0


def _many(seeds: range, kinds: Collection[Kind], jobs: int | None) -> int:
    began, failed, cpu_s, slowest = time.monotonic(), 0, 0.0, (0.0, 0)
    seen: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for seed, faults, took_s, counted in pool.map(partial(judge_seed, kinds=kinds), seeds, chunksize=10):
            seen += counted
            cpu_s += took_s
            slowest = max(slowest, (took_s, seed))
            if faults:
                failed += 1
                print(f"seed {seed}: " + "\n    ".join(faults), flush=True)
                if failed <= 3:
                    small = shrink(draw_plan(seed, kinds))
                    print("  made small:", *small.acts, sep="\n    ")
                    print(f"  again: {replay_line(small, kinds)}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in sorted(seen.items())))
    print(
        f"{len(seeds)} worlds in {time.monotonic() - began:.0f} s, "
        f"{cpu_s / max(len(seeds), 1):.3f} s of CPU a world "
        f"(the slowest {slowest[0]:.1f} s, seed {slowest[1]}), {failed} with something wrong"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets must be the same when a world is played again.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.campaign", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
