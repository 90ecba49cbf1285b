"""The pytest plugin: `table` and its configuration, stories as tests, `--table`, and what a failure shows.

pytest loads it for everybody who has heek installed, so it imports nothing of the table before it is asked
for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from heek.testing.levels import CANNOT, level

if TYPE_CHECKING:
    from heek.simulator.runner import BuildDaemon
    from heek.testing.rig import Level
    from heek.testing.stories import StoryFile
    from heek.testing.table import Table

_STORIES: Final = pytest.StashKey[frozenset[Path]]()
_TABLE: Final = pytest.StashKey[tuple["Table", Path]]()
"""The running table of a test, and the folder for what it shows of a failure."""
_FAILED: Final = pytest.StashKey[bool]()


# What the run is told


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("heek", "a table for Ahyoheek")
    group.addoption(
        "--table",
        default="sim",
        metavar="KIND",
        help="what the `table` fixture and stories play on: sim (default), virtual-pi, or a kind of your own",
    )
    parser.addini(
        "heek_stories",
        "story files (*.jsonl) that are tests, as patterns from the folder of this file",
        type="args",
        default=[],
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from heek.testing import hooks

    pluginmanager.add_hookspecs(hooks)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'table(keys, seed=0): configuration of the `table` fixture, like {"ahyoheek.countdown_s": 3}, and '
        "the seed of its chances; the nearest of several markers has the last word for each key",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse what is wrong for the whole run before anything is collected."""
    if session.config.getoption("--table") != "sim":
        level(session.config)
    listed_stories(session.config)


def pytest_heek_level(name: str) -> Level | None:
    if name != "sim":
        return None
    from heek.testing.simulated import SimulatedLevel

    return SimulatedLevel()


# The fixtures


@pytest.fixture
def table_config() -> Mapping[str, object]:
    """Configuration keys of the `table` fixture by their dotted names; override it for a module or folder."""
    return {}


@pytest.fixture
def table_daemon() -> BuildDaemon:
    """Makes the `table` fixture's daemon of configuration, world and loop; override it for a mod."""
    from heek.daemon import Daemon

    return Daemon


@pytest.fixture
def table(
    request: pytest.FixtureRequest,
    table_config: Mapping[str, object],
    table_daemon: BuildDaemon,
    tmp_path: Path,
) -> Iterator[Table]:
    """A table as new, switched on a second ago; see heek.testing.table.Table."""
    from heek.errors import StoryError
    from heek.testing.leaks import Watch
    from heek.testing.rig import NotHere, Setup
    from heek.testing.table import Table

    node = request.node
    keys, seed = _marked(node, table_config)
    source, line, _ = node.location
    setup = Setup(keys=keys, source=source, line=(line or 0) + 1, seed=seed, build=table_daemon)
    watch = Watch()

    def skip(reason: str) -> NoReturn:
        node.user_properties.append((CANNOT, reason))
        pytest.skip(f"--table={request.config.getoption('--table')} {reason}")

    refused: NotHere | StoryError | None = None
    try:
        rig = level(request.config).open(setup)
    except (NotHere, StoryError) as error:
        refused = error
    # Not while that one is handled, or pytest would tell both.
    if isinstance(refused, NotHere):
        skip(str(refused))
    if refused is not None:
        pytest.fail(str(refused), pytrace=False)
    left: list[str] = []
    try:
        table = Table(rig, setup, skip)
        node.stash[_TABLE] = table, tmp_path
        yield table
        if not node.stash.get(_FAILED, False):
            table.finish()
    finally:
        if _TABLE in node.stash:
            del node.stash[_TABLE]
        left += rig.close()
        left += watch.left()
    if left:
        pytest.fail("the test left something behind:\n" + "\n".join(left), pytrace=False)


def _marked(node: pytest.Item, keys: Mapping[str, object]) -> tuple[dict[str, object], int]:
    """The keys that the fixture and all markers give, the nearest marker last, and the seed."""
    result, seed = dict(keys), 0
    for mark in reversed(list(node.iter_markers("table"))):
        wrong = len(mark.args) > 1 or not all(isinstance(each, Mapping) for each in mark.args)
        given = mark.kwargs.get("seed", seed)
        if wrong or set(mark.kwargs) - {"seed"} or type(given) is not int:
            pytest.fail(
                f"{node.nodeid}: the marker table is not understood; write "
                '@pytest.mark.table({"ahyoheek.countdown_s": 3}, seed=1)',
                pytrace=False,
            )
        seed = given
        for each in mark.args:
            result.update(each)
    return result, seed


# Stories as tests


def listed_stories(config: pytest.Config) -> frozenset[Path]:
    """The files that the option `heek_stories` lists; raises pytest.UsageError if a pattern finds none."""
    if _STORIES not in config.stash:
        base = config.inipath.parent if config.inipath is not None else config.rootpath
        found: set[Path] = set()
        for pattern in config.getini("heek_stories"):
            files = {file.resolve() for file in base.glob(pattern) if file.is_file()}
            if not files:
                raise pytest.UsageError(
                    f"heek_stories: no file is called {pattern} in {base}; mend the pattern, or leave it out"
                )
            found |= files
        config.stash[_STORIES] = frozenset(found)
    return config.stash[_STORIES]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> StoryFile | None:
    if file_path.suffix != ".jsonl":
        return None
    listed = file_path.resolve() in listed_stories(parent.config)
    if not listed and not parent.session.isinitpath(file_path):
        return None
    from heek.testing.stories import StoryFile

    return StoryFile.from_parent(parent, path=file_path)


# What a failure shows


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when != "teardown":
        item.stash[_FAILED] = True
        if _TABLE in item.stash:
            report.sections.append(("table", _shown(item)))
    return report


def _shown(item: pytest.Item) -> str:
    """What the table of a failed test shows; a mod may have broken even that, and must not hide why."""
    from heek.testing.showing import table_shown

    table, folder = item.stash[_TABLE]
    try:
        return table_shown(table, folder, picture=item.config.get_verbosity() >= 2)
    except Exception as error:
        return f"the table cannot be shown any more: {error!r}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell and count what the kind of table could not do: a skipped test proves nothing."""
    reasons = Counter(
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) in ("setup", "call")
        for name, value in getattr(report, "user_properties", ())
        if name == CANNOT
    )
    if reasons:
        terminalreporter.section(f"not on --table={terminalreporter.config.getoption('--table')}")
        for reason, times in sorted(reasons.items()):
            terminalreporter.line(f"{times:>4} x {reason}")
