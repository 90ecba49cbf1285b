"""The configuration: right files give the spec's values, wrong ones every mistake with its line."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heek import config
from heek.clock import MILLISECOND, SECOND
from heek.config.keys import ARRAYS, BY_NAME, DRAWN, KEYS, LATER, SECTIONS, Flag, Key, Seconds, Whole
from heek.config.lines import lines_of
from heek.errors import ConfigError
from heek.session.settings import GestureSettings, SessionSettings
from heek.wiring.pin_map import DEFAULT_STATIONS, StationPins

BROKEN = Path(__file__).parent / "config" / "broken"
MOCK = '[stations]\nbackend = "mock"\n'


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config.from_text(text, "t.toml")
    return str(caught.value).split("\n")


def key_mistake(name: str, value: object) -> str:
    with pytest.raises(ConfigError) as caught:
        config.from_keys({"stations.backend": "mock", name: value}, "story")
    return str(caught.value)


def answer(read: Callable[[], config.Config]) -> tuple[config.Config | None, list[str]]:
    """A Config and no lines, or no Config and the lines of the ConfigError."""
    try:
        return read(), []
    except ConfigError as error:
        return None, str(error).split("\n")


@pytest.mark.parametrize("file", sorted(BROKEN.glob("*.toml")), ids=lambda path: path.stem)
def test_broken_files_give_the_golden_messages(file: Path) -> None:
    """Each file of the corpus is refused with exactly the messages that stand beside it."""
    golden = file.with_suffix(".txt")
    with pytest.raises(ConfigError) as caught:
        config.from_text(file.read_text(encoding="utf-8"), file.name)
    if os.environ.get("HEEK_RENEW_GOLDEN"):
        golden.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == golden.read_text(encoding="utf-8")


def test_defaults_are_those_of_session_and_gestures() -> None:
    """A file with the backend alone plays by the defaults of session and gestures."""
    read = config.from_text(MOCK, "t.toml")
    assert read.session_settings() == SessionSettings()
    assert read.gesture_settings() == GestureSettings()
    assert read.wired == DEFAULT_STATIONS
    assert read.table.gap == SECOND
    assert read.log.level == "info"
    assert read.stations.led_pwm
    assert read.stations.pin_factory == "lgpio"


def test_a_link_over_http_may_leave_out_where_the_ki_is() -> None:
    """Without an address the KI is found in the network; with https it is asked over TLS."""
    read = config.from_text(f'[ki]\nlink = "http"\n{MOCK}', "t.toml")
    assert (read.ki.link, read.ki.url, read.service.tls_port) == ("http", "", 0)
    read = config.from_text(f'[ki]\nlink = "http"\nurl = "https://ki.local:8626/"\n{MOCK}', "t.toml")
    assert read.ki.url == "https://ki.local:8626"


def test_defaults_are_within_their_own_ranges() -> None:
    """Every default passes the rule of its key."""
    for key in KEYS:
        if key.default is not None:
            key.default_value()


def test_every_value_reaches_its_setting() -> None:
    """Values unlike the defaults arrive in SessionSettings and GestureSettings, each in its own place."""
    read = config.from_keys(
        {
            "table.name": "Ae'gura",
            "table.on_power_loss": "void",
            "table.resume_max_s": 7,
            "seats.lobby_s": 2.5,
            "seats.lobby_idle_s": 11,
            "seats.rematch_s": 6,
            "seats.hold_s": 0.75,
            "seats.leave_s": 2,
            "seats.late_join": True,
            "ahyoheek.target": 2,
            "ahyoheek.cycle": "pen-beetle-page",
            "ahyoheek.timer": "fixed",
            "ahyoheek.countdown_s": 3,
            "ahyoheek.reveal_s": 0.5,
            "ahyoheek.match_over_s": 1.25,
            "ahyoheek.idle_s": 12,
            "ahyoheek.guard_s": 0,
            "ahyoheek.settle_s": 0.005,
            "ahyoheek.allow_change": False,
            "ahyoheek.missed_limit": 0,
            "ahyoheek.sudden_death_limit": 1,
            "ahyoheek.winnerless_limit": 2,
            "ahyoheek.economy": "award",
            "stations.backend": "mock",
            "stations.debounce_s": 0.002,
            "stations.chord_s": 0,
            "stations.stuck_s": 5,
            "station": [{"seat": 5}, {"seat": 2}],
        },
        "story.jsonl:1",
    )
    assert read.session_settings() == SessionSettings(
        name="Ae'gura",
        seats=(2, 5),
        lobby=2500 * MILLISECOND,
        lobby_idle=11 * SECOND,
        rematch=6 * SECOND,
        late_join=True,
        target=2,
        cycle="pen-beetle-page",
        timer="fixed",
        countdown=3 * SECOND,
        reveal=500 * MILLISECOND,
        match_over=1250 * MILLISECOND,
        idle=12 * SECOND,
        guard=0,
        settle=5 * MILLISECOND,
        allow_change=False,
        missed_limit=0,
        sudden_death_limit=1,
        winnerless_limit=2,
        economy="award",
        resume=False,
        resume_max=7 * SECOND,
    )
    assert read.gesture_settings() == GestureSettings(
        debounce=2 * MILLISECOND, chord=0, stuck=5 * SECOND, hold=750 * MILLISECOND, leave=2 * SECOND
    )


def test_seconds_are_exact() -> None:
    """0.3 s is 300,000,000 ns from a file, from a story's float and from a Decimal alike."""
    from_file = config.from_text(MOCK + "[ahyoheek]\nguard_s = 0.3\n", "t.toml")
    assert from_file.ahyoheek.guard == 300_000_000
    for value in (0.3, Decimal("0.3")):
        read = config.from_keys({"stations.backend": "mock", "ahyoheek.guard_s": value}, "story")
        assert read.ahyoheek.guard == 300_000_000


@pytest.mark.parametrize("key", [key for key in KEYS if isinstance(key.rule, Seconds)], ids=lambda k: k.name)
def test_seconds_allow_both_ends_and_nothing_beyond(key: Key) -> None:
    """Every span of seconds takes its two ends, and refuses a nanosecond more or less with its range."""
    rule = key.rule
    low, high = Decimal(rule.low), Decimal(rule.high)
    assert rule.read(low) == low * SECOND
    assert rule.read(high) == high * SECOND
    # A story's floats too: as a binary fraction 0.1 lies a little above 0.1.
    assert rule.read(float(rule.low)) == low * SECOND
    assert rule.read(float(rule.high)) == high * SECOND
    for beyond in (low - Decimal("1e-9"), high + Decimal("1e-9")):
        assert f"out of range: {rule.low} to {rule.high} seconds" in key_mistake(key.name, beyond)


@pytest.mark.parametrize("key", [key for key in KEYS if isinstance(key.rule, Whole)], ids=lambda k: k.name)
def test_whole_numbers_allow_both_ends_and_nothing_beyond(key: Key) -> None:
    """Every count takes its two ends, and refuses one more, one less, a fraction and true."""
    rule = key.rule
    assert rule.read(rule.low) == rule.low
    assert rule.read(rule.high) == rule.high
    for beyond in (rule.low - 1, rule.high + 1, 10**6000):
        assert f"out of range: {rule.low} to {rule.high}" in key_mistake(key.name, beyond)
    for wrong in (True, 2.0, "2", None, [2]):
        assert "must be a whole number" in key_mistake(key.name, wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("-Infinity"), Decimal("sNaN"), 1e308])
def test_numbers_that_are_none_are_refused(value: object) -> None:
    """NaN of both kinds, infinities and giants are out of range, not a crash."""
    assert "is out of range: 1 to 60 seconds" in key_mistake("ahyoheek.countdown_s", value)


@pytest.mark.parametrize("key", [key for key in KEYS if isinstance(key.rule, Flag)], ids=lambda k: k.name)
def test_flags_want_true_or_false(key: Key) -> None:
    """A flag refuses 0, 1 and the words in quotes."""
    for wrong in (0, 1, "true", None):
        assert "must be true or false, without quotes" in key_mistake(key.name, wrong)


def test_later_keys_are_named_as_such() -> None:
    """A key of the specification that this version lacks says so; none of them is known already."""
    assert not LATER & set(BY_NAME)
    for name in LATER:
        assert key_mistake(name, 1) == f"story: {name}: not in this version yet; remove it"


@pytest.mark.parametrize("value", ["x" * 24, "Ae'gura ⚙", "ÄÖ" * 12, '"q"\\'])
def test_table_names_that_are_right(value: str) -> None:
    """1 to 24 printable characters, whatever their bytes, are taken as they are and survive show()."""
    read = config.from_keys({"stations.backend": "mock", "table.name": value}, "story")
    assert read.table.name == value
    assert config.from_text(config.show(read), "t") == read


@pytest.mark.parametrize("value", ["", " ", "x" * 25, "a\tb", "a\x7f", "a\u200bb", "\ud800", 7, None])
def test_table_names_that_are_wrong(value: object) -> None:
    """Empty, blank, long, unprintable names and other types are refused in one line that can be printed."""
    text = key_mistake("table.name", value)
    assert text.startswith("story: table.name: ")
    assert text.isprintable()


def test_station_takes_its_seats_pins_for_what_it_leaves_out() -> None:
    """A [[station]] with a seat alone has that seat's pins; one with a pin has the others of its seat."""
    read = config.from_text(MOCK + "[[station]]\nseat = 3\n[[station]]\nseat = 1\nled = 18\n", "t.toml")
    standard = {pins.seat: pins for pins in DEFAULT_STATIONS}
    first = standard[1]
    assert read.wired == (StationPins(1, first.pen, first.page, first.beetle, 18), standard[3])
    assert read.seat_numbers == (1, 3)


def test_displays_without_any_given() -> None:
    """No [[display]] means one SSD1306 on the Pi's bus with gpio, and a dummy with mock."""
    panel = config.DisplayConfig("ssd1306", 1, 0x3C, 0)
    assert config.from_keys({"stations.backend": "gpio"}, "s").displays == (panel,)
    assert [d.driver for d in config.from_keys({"stations.backend": "mock"}, "s").displays] == ["dummy"]


def test_displays_given() -> None:
    """Several [[display]] keep their order, and two dummies may share an address."""
    keys = {
        "stations.backend": "mock",
        "display": [{"rotate": 2}, {"address": 0x3D}, {"driver": "dummy"}, {"driver": "dummy"}],
    }
    read = config.from_keys(keys, "s")
    assert [(d.driver, d.address, d.rotate) for d in read.displays] == [
        ("ssd1306", 0x3C, 2),
        ("ssd1306", 0x3D, 0),
        ("dummy", 0x3C, 0),
        ("dummy", 0x3C, 0),
    ]


def test_example_is_complete_and_equals_the_defaults() -> None:
    """The example loads, equals the defaults, and names every key with its meaning."""
    text = config.example()
    assert config.from_text(text, "example") == config.from_text('stations.backend = "gpio"', "t")
    for key in KEYS:
        bare = key.name.rpartition(".")[2]
        assert f"\n{bare} = " in text or f"\n# {bare} = " in text
        assert key.meaning in text
    assert "/var/lib/heek" in text


def test_load_reads_a_file_with_a_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    """A file as Windows writes it is read, and its mistakes have the right lines."""
    file = tmp_path / "table.toml"
    file.write_bytes(b"\xef\xbb\xbf" + MOCK.replace("\n", "\r\n").encode())
    assert config.load(file).stations.backend == "mock"
    file.write_bytes(file.read_bytes() + b"stuck_s = 1\r\n")
    with pytest.raises(ConfigError, match=r"table\.toml:3: stations\.stuck_s: 1 is out of range"):
        config.load(file)


def test_load_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    """A missing file, a folder, no text, too large a file and a hopeless path are one line each."""
    cases: list[tuple[Path, bytes | None, str]] = [
        (tmp_path / "none.toml", None, "there is no such file; `heek config example >"),
        (tmp_path, None, "is a folder; give the file in it"),
        (
            tmp_path / "latin.toml",
            b"[table]\nname = 'Caf\xe9'\n",
            "latin.toml:2: is not UTF-8 text (byte 0xe9)",
        ),
        (tmp_path / "big.toml", b"#" * 65_537, "is larger than 64 KiB"),
        (tmp_path / "nul\0.toml", None, "cannot be read"),
        (tmp_path / "x.toml" / "y.toml", None, "cannot be read"),
    ]
    (tmp_path / "x.toml").write_text("")
    for path, data, text in cases:
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ConfigError) as caught:
            config.load(path)
        assert text in str(caught.value)
        assert str(caught.value).isprintable()


def test_load_accepts_64_kib_exactly(tmp_path: Path) -> None:
    """The limit itself is still allowed."""
    file = tmp_path / "t.toml"
    file.write_bytes(MOCK.encode() + b"#" * (65_536 - len(MOCK)))
    assert config.load(file).stations.backend == "mock"


def test_text_that_breaks_the_parser_is_one_message() -> None:
    """Brackets without end and a number of thousands of digits are told like other syntax mistakes."""
    assert mistakes("a = " + "[" * 30_000) == ["t.toml: not valid TOML: brackets are nested too deeply"]
    [text] = mistakes("a = 1" + "0" * 5000)
    assert text.startswith("t.toml: not valid TOML: Exceeds the limit")


def test_a_file_of_rubbish_keys_is_answered_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 KiB of unknown keys give one line each without comparing all their names, which is slow."""
    compared: list[str] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, *_, **__: compared.append(name) or [])
    text = MOCK + "".join(f"k{n:x}=1\n" for n in range(7000))
    assert len(mistakes(text)) == 7000
    assert len(compared) == 50


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("where", ["", "table.", "ki.", "seats.", "web."])
def test_a_table_is_given_nothing_that_it_draws(where: str, name: str) -> None:
    """A seed, a key, an id or an incarnation is refused wherever it stands, and it is said why."""
    section, _, _ = where.rpartition(".")
    text = f"[{section}]\n{name} = 5\n" if section else f"{name} = 5\n"
    (said,) = mistakes(text + MOCK)
    line = 2 if section else 1
    assert said.startswith(
        f"t.toml:{line}: {where}{name}: a table draws {DRAWN[name]} itself, so that nobody"
    )
    assert f"{where}{name}: a table draws" in key_mistake(f"{where}{name}", 5)


def test_choices_of_numbers_want_that_number() -> None:
    """rotate takes 0 and 2, but neither false, which equals 0, nor 2.0."""
    for wrong in (False, 2.0, "0", 1):
        assert "rotate: must be 0 or 2" in key_mistake("display", [{"rotate": wrong}])


def test_show_writes_numbers_as_people_do() -> None:
    """Seconds without needless digits, addresses in hexadecimal, the rest plain."""
    text = config.show(config.from_keys({"stations.backend": "gpio", "seats.lobby_s": 2.50}, "s"))
    assert "lobby_s = 2.5\n" in text
    assert "countdown_s = 5\n" in text
    assert "bus = 1\naddress = 0x3c\nrotate = 0\n" in text


def test_state_dir_of_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """systemd's folder goes before XDG's, XDG's before the home's; relative ones are ignored."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/heek:/var/lib/other")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert config.default_state_dir() == Path("/var/lib/heek")
    monkeypatch.setenv("STATE_DIRECTORY", "relative")
    assert config.default_state_dir() == Path("/xdg/heek")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert config.default_state_dir() == tmp_path / ".local/state/heek"
    assert config.from_text(MOCK, "t").table.state_dir == tmp_path / ".local/state/heek"
    monkeypatch.setattr("sys.platform", "darwin")
    assert config.default_state_dir() == tmp_path / "Library/Application Support/heek"


def test_state_dir_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder is told to set the key, and need not when it is set."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert mistakes(MOCK) == [
        "t.toml: table.state_dir: this user has no home folder to keep the journal in; "
        'set it, for example state_dir = "/var/lib/heek"'
    ]
    assert config.from_text(MOCK + '[table]\nstate_dir = "/x"\n', "t").table.state_dir == Path("/x")


def test_state_dir_with_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/` is the home of who runs heek; the home of nobody is refused."""
    monkeypatch.setenv("HOME", "/home/atrus")
    read = config.from_keys({"stations.backend": "mock", "table.state_dir": "~/heek"}, "s")
    assert read.table.state_dir == Path("/home/atrus/heek")
    assert "there is no such home folder" in key_mistake("table.state_dir", "~no_such_user_xyz/heek")


def test_lines_of_every_way_to_write_a_key() -> None:
    """Headings, arrays of tables, dotted, quoted and inline keys all have the line they stand on."""
    text = (
        'a.b = 1\n"q \\u0041".x = { y = 1, z = [ { w = 2 } ] }\n\n[t] # c\n'
        "'k' = '''\nnot = 1\n'''\n[[u.v]]\nn = [\n  1, # one\n  { m = 1 },\n]\n"
        "[u.v.s]\np = 1\n[[u.v]]\nn = 2\n"
    )
    tomllib.loads(text)
    lines = lines_of(text)
    expected = {
        ("a",): 1,
        ("a", "b"): 1,
        ("q A", "x", "z", 0, "w"): 2,
        ("t",): 4,
        ("t", "k"): 5,
        ("u",): 8,
        ("u", "v", 0): 8,
        ("u", "v", 0, "n"): 9,
        ("u", "v", 0, "n", 1, "m"): 11,
        ("u", "v", 0, "s"): 13,
        ("u", "v", 0, "s", "p"): 14,
        ("u", "v", 1): 15,
        ("u", "v", 1, "n"): 16,
    }
    assert {place: lines.get(place) for place in expected} == expected


# --- Properties -----------------------------------------------------------------------------

_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(max_size=30),
    st.dates(),
    st.sampled_from([3, 0.5, "mock", "gpio", "ahyoheek", "~x/", "/", 10**4000]),
)
_NAMES = st.one_of(
    st.sampled_from([*BY_NAME, *LATER, *SECTIONS, *ARRAYS, "web", "seat", "pen", "driver", "bus"]),
    st.text(max_size=12),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_keys_give_a_config_or_a_config_error(keys: dict[str, Any]) -> None:
    """Whatever a story sets gives a Config or a ConfigError whose lines each begin with the source."""
    _, lines = answer(lambda: config.from_keys(keys, "story"))
    assert all(line.startswith("story: ") for line in lines)


def toml(value: Any) -> str:
    """A value as TOML, written without our own code."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    if isinstance(value, Decimal):
        return str(value).lower().replace("infinity", "inf") if not value.is_nan() else "nan"
    return str(value)


_WRITABLE: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.dates()
    | st.sampled_from([3, "mock"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES.filter(lambda n: n.isprintable()), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SECTIONS, *ARRAYS, "web", "x"]), _WRITABLE, max_size=6))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example({"station": [{"seat": 1}, {"seat": 1, "pen": True}]})
def test_any_toml_gives_a_config_or_a_config_error_with_lines(document: dict[str, Any]) -> None:
    """Whatever a valid file holds gives a Config or a ConfigError, and unknown keys have lines."""
    text = "".join(f"{toml(key)} = {toml(value)}\n" for key, value in document.items())
    tomllib.loads(text)
    _, lines = answer(lambda: config.from_text(text, "t.toml"))
    for line in lines:
        assert line.startswith("t.toml:")
        if ": unknown" in line:
            assert line.split(":")[1].isdigit()


@given(st.text(max_size=60) | st.text("[]{}=\"'\n#.,a1\\ ", max_size=60))
@settings(max_examples=500, deadline=None)
@example('a = """"""\n')
def test_any_text_gives_a_config_error(text: str) -> None:
    """Rubbish of any kind is a ConfigError, and never another exception."""
    with pytest.raises(ConfigError):
        config.from_text(text, "t.toml")


OF_LINKS = {
    "web.host": ["0.0.0.0", "::1", "table.local"],
    "ki.url": ["", "http://ki.local", "http://[::1]:8625", "https://ki.local:8626"],
    "ki.port": ["", "/dev/serial0", "/dev/serial/by-id/a b"],
    "service.host": ["127.0.0.1"],
    "service.database": ["", "/var/lib/heek ki/ki.sqlite3"],
    "service.name": ["KI", 'The "Great" One'],
}


@st.composite
def right_keys(draw: st.DrawFn) -> dict[str, Any]:
    """Keys that are each right; now and then two of them do not go together."""
    keys: dict[str, Any] = {"stations.backend": draw(st.sampled_from(["gpio", "mock"]))}
    for key in draw(st.lists(st.sampled_from(KEYS), unique_by=lambda key: key.name)):
        rule = key.rule
        if isinstance(rule, Seconds):
            keys[key.name] = draw(st.decimals(rule.low, rule.high, places=draw(st.integers(3, 12))))
        elif isinstance(rule, Whole):
            keys[key.name] = draw(st.integers(rule.low, rule.high))
        elif isinstance(rule, Flag):
            keys[key.name] = draw(st.booleans())
        elif key.name == "table.name":
            keys[key.name] = draw(
                st.text(min_size=1, max_size=24).filter(lambda n: n.isprintable() and n.strip())
            )
        elif key.name == "table.state_dir":
            keys[key.name] = "/" + draw(st.text('a"\\ é/', max_size=9))
        elif key.name in OF_LINKS:
            keys[key.name] = draw(st.sampled_from(OF_LINKS[key.name]))
        elif key.name != "stations.backend":
            keys[key.name] = draw(st.sampled_from(rule.values))  # type: ignore[attr-defined]
    seats = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5, unique=True))
    if draw(st.booleans()):
        keys["station"] = [{"seat": seat} for seat in seats]
    if draw(st.booleans()):
        keys["display"] = [{"rotate": 2, "address": 0x3C + place} for place in range(draw(st.integers(0, 3)))]
    return keys


@given(right_keys())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_shown_reads_back_equal(keys: dict[str, Any]) -> None:
    """show() writes every Config so that it reads back equal; only cross-checks refuse right keys."""
    read, lines = answer(lambda: config.from_keys(keys, "story"))
    assert all("must be above" in line or "ki.link" in line or "tls_port" in line for line in lines)
    if read is not None:
        assert config.from_text(config.show(read), "shown") == read


def test_a_service_needs_no_table(tmp_path: Path) -> None:
    """`heek ki serve` takes a file with nothing but its own section, and names a mistake in any other."""
    file = tmp_path / "ki.toml"
    file.write_text('[service]\nport = 9000\nname = "Relto"\n')
    service, log = config.load_service(file)
    assert (service.host, service.port, service.name, log.level) == ("127.0.0.1", 9000, "Relto", "info")
    file.write_text("[service]\nport = 9000\n[seats]\nlobby_s = 0\n")
    with pytest.raises(ConfigError, match=r"ki.toml:4: seats.lobby_s"):
        config.load_service(file)
