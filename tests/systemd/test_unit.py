"""The units start table and KI, come back after every failure that can pass, and may touch little."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from heek.cli import main
from heek.cli.lamps import PATIENCE_S

FOLDER = Path(__file__).parents[2] / "systemd"
UNIT = FOLDER / "heek.service"
KI_UNIT = FOLDER / "heek-ki.service"
GATEWAY_UNIT = FOLDER / "heek-ki-gateway.service"
UNITS = [UNIT, KI_UNIT, GATEWAY_UNIT]
EXPOSURE_LIMIT = 2.0

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (apt: systemd)"
)
needs_sysusers = pytest.mark.skipif(
    shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is not installed (apt: systemd)"
)


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "LC_ALL": "C"}
    )


@pytest.fixture(params=UNITS, ids=lambda unit: unit.stem)
def installed(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A unit with a program that exists here in place of the installed one."""
    program = tmp_path / "heek"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / request.param.name
    unit.write_text(request.param.read_text().replace("/opt/heek/venv/bin/heek", str(program)))
    return unit


def _settings(section: str, unit: Path = UNIT) -> dict[str, list[str]]:
    """The section's settings; a name that stands there twice has two values."""
    settings: dict[str, list[str]] = {}
    here = ""
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif here == section and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            settings.setdefault(name, []).append(value)
    return settings


@needs_analyze
def test_unit_passes_systemds_own_check(installed: Path) -> None:
    """systemd-analyze verify finds nothing to say about the unit."""
    result = _run(["systemd-analyze", "--man=no", "verify", installed])
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@needs_analyze
def test_systemds_check_would_find_a_mistake(installed: Path) -> None:
    """The check is not blind: a misspelt setting in the same unit is reported."""
    installed.write_text(installed.read_text().replace("RestartSec=", "RestartSecs="))
    result = _run(["systemd-analyze", "--man=no", "verify", installed])
    assert "RestartSecs" in result.stdout + result.stderr


@needs_analyze
def test_unit_is_little_exposed(installed: Path) -> None:
    """systemd rates the unit's exposure at 2.0 or less of 10."""
    result = _run(["systemd-analyze", "security", "--offline=yes", "--no-pager", installed])
    found = re.search(r"exposure level for heek[a-z-]*\.service: ([0-9.]+)", result.stdout)
    if found is None and "offline" in result.stderr:
        pytest.skip("this systemd is too old to rate a unit that is not loaded")
    assert found, result.stdout + result.stderr
    assert float(found[1]) <= EXPOSURE_LIMIT


def test_unit_runs_the_command_that_the_package_installs() -> None:
    """ExecStart is `heek run` with a configuration, and nothing of a shell."""
    assert _settings("Service")["ExecStart"] == ["/opt/heek/venv/bin/heek run --config /etc/heek/table.toml"]


def test_the_lamps_are_put_out_however_the_table_ends() -> None:
    """After every end, crash or not, the unit runs `heek lamps off`, and its failure is not the unit's."""
    assert _settings("Service")["ExecStopPost"] == [
        "-/opt/heek/venv/bin/heek lamps off --config /etc/heek/table.toml"
    ]
    assert PATIENCE_S < 10


def test_the_ki_keeps_its_ledger_where_its_unit_may_write() -> None:
    """ExecStart is `heek ki serve` with its ledger in the state folder that systemd makes for it alone."""
    service = _settings("Service", KI_UNIT)
    (command,) = service["ExecStart"]
    assert command.startswith("/opt/heek/venv/bin/heek ki serve --config /etc/heek/ki.toml ")
    assert command.endswith(" --database /var/lib/heek-ki/ki.sqlite3")
    assert (service["StateDirectory"], service["StateDirectoryMode"]) == (["heek-ki"], ["0700"])
    assert service["DynamicUser"] == ["yes"]


def test_the_gateway_takes_its_ports_from_a_file_and_may_open_them() -> None:
    """Options come, split at blanks, from a file that may be missing; every kind of port is allowed."""
    service = _settings("Service", GATEWAY_UNIT)
    assert service["ExecStart"] == ["/opt/heek/venv/bin/heek ki serial-gateway $HEEK_GATEWAY"]
    assert service["EnvironmentFile"] == ["-/etc/heek/gateway.env"]
    assert service["SupplementaryGroups"] == ["dialout"]
    assert {value.split()[0] for value in service["DeviceAllow"]} == {
        "char-ttyAMA",
        "char-ttyS",
        "char-ttyUSB",
        "char-ttyACM",
    }
    assert "PrivateDevices" not in service


def test_a_gateway_without_ports_is_a_mistake_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Without its file the program is called without a port: it says so, and systemd does not try again."""
    with pytest.raises(SystemExit) as ended:
        main(["ki", "serial-gateway"])
    assert ended.value.code == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_never_stays_dead_but_for_a_wrong_configuration(unit: Path) -> None:
    """Failures are tried again for ever, with a pause; exit code 2 is not."""
    assert _settings("Unit", unit)["StartLimitIntervalSec"] == ["0"]
    service = _settings("Service", unit)
    assert service["Restart"] == ["on-failure"]
    assert service["RestartPreventExitStatus"] == ["2"]
    assert service["RestartSec"] == ["5s"]


@pytest.mark.parametrize("of", [UNIT, GATEWAY_UNIT], ids=lambda unit: unit.stem)
def test_unit_depends_on_no_device_and_no_network(of: Path) -> None:
    """Nothing is required: with no bus, no port and no network the table and the gateway still start."""
    unit = _settings("Unit", of)
    assert not {"Requires", "Requisite", "BindsTo", "PartOf"} & set(unit)
    ordering = " ".join(unit.get("After", []) + unit.get("Wants", []))
    assert ".device" not in ordering
    assert "network-online" not in ordering


def test_unit_stops_by_sigterm_within_ten_seconds() -> None:
    """A stop is SIGTERM, with ten seconds before it is more."""
    service = _settings("Service")
    assert service["KillSignal"] == ["SIGTERM"]
    assert service["TimeoutStopSec"] == ["10s"]


def test_the_pin_library_may_write_its_pipe() -> None:
    """Working folder and LG_WD are the state folder that systemd makes writable."""
    service = _settings("Service")
    assert service["StateDirectory"] == ["heek"]
    assert service["WorkingDirectory"] == ["/var/lib/heek"]
    assert "LG_WD=/var/lib/heek" in service["Environment"]


def test_unit_does_not_hide_what_the_pin_library_reads() -> None:
    """No setting hides /proc/device-tree or the devices, and every device of the table is allowed."""
    service = _settings("Service")
    assert not {"ProcSubset", "PrivateDevices", "MemoryDenyWriteExecute", "PrivateUsers"} & set(service)
    allowed = {value.split()[0] for value in service["DeviceAllow"]}
    assert {"char-gpiochip", "char-i2c", "char-ttyAMA", "char-ttyS", "/dev/gpiomem"} <= allowed


def test_the_table_may_ask_the_kernel_for_its_clock_and_set_none() -> None:
    """What tells of chrony is let through, after what forbids it; no capability is left to set the clock."""
    service = _settings("Service")
    filters = service["SystemCallFilter"]
    allowed = {
        name for each in filters[filters.index("~@privileged @resources") + 1 :] for name in each.split()
    }
    assert allowed == {"adjtimex", "clock_adjtime", "clock_adjtime64"}
    assert "ProtectClock" not in service
    assert service["CapabilityBoundingSet"] == [""]


@needs_sysusers
def test_user_gets_its_groups_also_where_they_are_missing(tmp_path: Path) -> None:
    """On a system without gpio, i2c and dialout the file makes user and groups; heek is in each."""
    (tmp_path / "etc").mkdir()
    result = _run(["systemd-sysusers", f"--root={tmp_path}", FOLDER / "heek.sysusers.conf"])
    assert result.returncode == 0, result.stderr
    groups = {
        line.split(":")[0]: line.rsplit(":", 1)[1]
        for line in (tmp_path / "etc" / "group").read_text().splitlines()
    }
    assert {name for name, members in groups.items() if "heek" in members.split(",")} == {
        "gpio",
        "i2c",
        "dialout",
    }
    assert "/usr/sbin/nologin" in (tmp_path / "etc" / "passwd").read_text()


def test_readme_installs_every_file_of_the_folder() -> None:
    """Each file beside the README is named in its table and in its installation lines."""
    readme = (FOLDER / "README.md").read_text()
    for path in FOLDER.iterdir():
        if path.name != "README.md":
            assert f"| `{path.name}` |" in readme
            assert f"systemd/{path.name} /etc/" in readme
