"""`make test-virtual-pi`: 0 if all tests of the guest passed, 1 if not, 2 if this machine cannot boot one."""

from __future__ import annotations

import argparse
import sys

from tests.virtual_pi.building import CannotBuild
from tests.virtual_pi.parts import missing
from tests.virtual_pi.running import OURS, NoVerdict, run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.virtual_pi", description="All else goes to the guest's pytest."
    )
    parser.add_argument("--presses", type=int, help="how many around the close (default: half a minute's)")
    parser.add_argument(
        "--tests",
        action="append",
        help="a file or folder of tests that are played instead of ours; repeatable",
    )
    options, arguments = parser.parse_known_args(arguments)
    lack = missing()
    if lack is not None:
        print(lack, file=sys.stderr)
        return 2
    # Tests of somebody else may ask for what a virtual Pi cannot do; none of ours does.
    tests = tuple(options.tests or OURS)
    try:
        verdict = run(arguments, lambda line: print(line, flush=True), presses=options.presses, tests=tests)
    except (CannotBuild, NoVerdict) as error:
        print(f"virtual Pi: {error}", file=sys.stderr)
        return 1
    for word, names in (
        ("failed", verdict.failed),
        ("skipped" if options.tests else "skipped, which none may", verdict.skipped),
        ("not heard of", verdict.missing),
    ):
        for name in names:
            print(f"virtual Pi: {word}: {name}")
            for line in verdict.reasons.get(name, "").splitlines():
                print(f"  {line}")
    print(
        f"virtual Pi: {len(verdict.passed)} passed, {len(verdict.expected_failures)} failed as expected, "
        f"{len(verdict.failed)} failed, {len(verdict.skipped)} skipped, {len(verdict.missing)} not heard of, "
        f"in {verdict.took_s:.0f} s"
    )
    fine = verdict.ok or (options.tests and verdict.passed and not (verdict.failed or verdict.missing))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
