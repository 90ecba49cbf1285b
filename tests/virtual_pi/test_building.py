"""The changes to the kernel's sources are made or refused, and the locks of the pin libraries agree."""

from __future__ import annotations

import re

import pytest

from tests.virtual_pi.building import HERE, CannotBuild, adapted, lock_entry
from tests.virtual_pi.parts import ROOT

PULL_UP = """
#include <linux/irq.h>
	struct gpio_sim_chip *chip = gpiochip_get_data(gc);

	switch (pinconf_to_config_param(config)) {
	case PIN_CONFIG_BIAS_PULL_UP:
		return gpio_sim_apply_pull(chip, offset, 1);
	case PIN_CONFIG_BIAS_PULL_DOWN:
		return gpio_sim_apply_pull(chip, offset, 0);

	ret = gpio_sim_apply_pull(chip, line_attr->offset, pull);
"""


def test_a_pull_up_that_is_asked_for_lets_no_finger_go() -> None:
    """In the simulated chip a request for a pull changes nothing; what hangs on the line decides."""
    changed = adapted("gpio-sim.c", PULL_UP)
    assert "return gpio_sim_apply_pull" not in changed
    assert changed.count("return 0;") == 2
    assert changed.index("synchronize_irq(") < changed.index("ret = gpio_sim_apply_pull")
    assert adapted("gpiolib.h", PULL_UP) == PULL_UP


@pytest.mark.parametrize(
    ("name", "text"), [("irq_sim.c", "int x;"), ("gpio-sim.c", ""), ("gpio-sim.c", PULL_UP * 2)]
)
def test_a_source_that_has_changed_is_refused(name: str, text: str) -> None:
    """A kernel whose source is another one is not built with half of our changes."""
    with pytest.raises(CannotBuild, match=f"the kernel's {name} has changed"):
        adapted(name, text)


def test_the_pin_libraries_are_pinned_hashed_and_one_version() -> None:
    """rpi-lgpio has its own lock, hashed, with the lgpio of the table's lock."""
    lock = (HERE / "requirements-rpi-lgpio.txt").read_text()
    entries = {
        re.split("==", entry)[0]: entry for entry in re.split(r"(?m)^(?=[a-z])", lock) if entry.strip()
    }
    assert entries.keys() == {"lgpio", "rpi-lgpio"}
    for entry in entries.values():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)
    table = lock_entry(ROOT / "controller" / "requirements-pi.txt", "lgpio")
    assert table.split()[0] == entries["lgpio"].split()[0]
    assert "--hash=sha256:" in table
    with pytest.raises(CannotBuild, match="has no rpi-lgpio"):
        lock_entry(ROOT / "controller" / "requirements-pi.txt", "rpi-lgpio")
