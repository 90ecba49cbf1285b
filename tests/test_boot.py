"""What is known of this boot, on machines that know it and on those that do not."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from heek import boot
from heek.boot import Boot, this_boot


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the kernel's boot id and systemd's mark are looked for."""
    monkeypatch.setattr(boot, "_BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(boot, "_SYNCHRONISED", tmp_path / "synchronized")
    monkeypatch.setattr(boot, "_adjtimex", lambda: None)
    return tmp_path


def test_the_kernels_id_and_an_unset_clock(machine: Path) -> None:
    """The boot's id is the kernel's; a clock that nobody set is not believed."""
    (machine / "boot_id").write_text("a3b1c5d7-0000-4000-8000-000000000001\n")
    assert this_boot() == Boot("a3b1c5d7-0000-4000-8000-000000000001", "none")
    assert this_boot() == this_boot()


def test_a_clock_that_was_set_is_believed(machine: Path) -> None:
    """systemd's mark says that the wall clock was set over the network."""
    (machine / "boot_id").write_text("a3b1c5d7-0000-4000-8000-000000000001\n")
    (machine / "synchronized").touch()
    assert this_boot().trust == "ntp"


@pytest.mark.usefixtures("machine")
def test_without_a_kernels_id_each_process_is_a_boot() -> None:
    """Where there is no boot id two starts are never taken for one boot."""
    one, other = this_boot(), this_boot()
    assert one.id != other.id
    uuid.UUID(one.id)
