# The commands of this project, each one thin line around a real one. `make help` lists them.

PYTHON ?= python3
VENV := .venv/bin
LOCKS := controller/requirements
# What stands in for RPi.GPIO on the virtual Pi; the table's own locks never hold both.
RPI_LGPIO := tests/virtual_pi/requirements-rpi-lgpio
# Where an environment forbids Python to keep what it compiled, each start compiles anew; that
# matters to those who wait for a demo or measure a start.
KEEP_COMPILED := env -u PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-virtual-pi check bench campaign killed fuzz documents lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

setup: .venv/.installed-dev ## .venv with everything that work on the project needs

DEMO = $(if $(LAN),--lan $(filter-out 1,$(LAN))) $(if $(LINK),--link $(LINK)) $(if $(FAST),--fast)

demo: .venv/.installed ## a table and a KI in the browser; LAN=1 phones, LINK=serial, FAST=1 in the terminal
	@$(KEEP_COMPILED) $(VENV)/heek demo $(DEMO) $(ARGS)

# One worker has the browsers (tests/conftest.py), the other all else.
WORKERS ?= 2

test: .venv/.installed-dev ## all tests; says what was skipped and why; ARGS= for pytest
	@$(VENV)/python -m pytest -rs -n $(WORKERS) --dist loadgroup $(ARGS)

VIRTUAL_PI = $(if $(PRESSES),--presses $(PRESSES)) $(addprefix --tests ,$(TESTS))

test-virtual-pi: .venv/.installed-dev ## the daemon on a kernel's own pins and bus, in a VM; ARGS= for pytest
	@$(VENV)/python -m tests.virtual_pi $(VIRTUAL_PI) $(ARGS)

check: .venv/.installed-dev ## form, types, import contracts, generated documents
	@$(VENV)/ruff format --check controller tests
	@$(VENV)/ruff check controller tests
	@$(VENV)/mypy
	@$(VENV)/lint-imports --no-cache
	@$(VENV)/python -m heek.wiring check

bench: .venv/.installed-dev ## measure latency, speed, start, memory; writes JSON and a table
	@$(KEEP_COMPILED) $(VENV)/python -m tests.bench $(ARGS)

campaign: .venv/.installed-dev ## random worlds of tables and a KI, with every fault; SEED= WORLDS= ARGS=
	@$(VENV)/python -m tests.campaign --seed $(or $(SEED),0) --worlds $(or $(WORLDS),500) $(ARGS)

killed: .venv/.installed-dev ## kill -9 of table and KI at every write of a match on its way; ARGS=
	@$(VENV)/python -m tests.killed_processes $(ARGS)

fuzz: .venv/.installed-dev ## random stories, presses around the close, bytes into every decoder
	@$(VENV)/python -m tests.fuzz --stories 10000 $(ARGS)
	@$(VENV)/python -m tests.close_calls --presses 100000
	@$(VENV)/python -m tests.decoders --inputs 500000

documents: .venv/.installed-dev ## write pinout, header drawing, boot settings, phase diagram
	@$(VENV)/python -m heek.wiring write

UV = $(firstword $(wildcard $(VENV)/uv) uv)
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	$(UPGRADE) pyproject.toml controller/build-backend.in

lock: ## renew the hashed requirements (needs uv); UPGRADE=--upgrade for newer versions
	@command -v $(UV) >/dev/null || { echo "heek needs uv to lock: $(VENV)/pip install uv" >&2; exit 1; }
	@$(COMPILE) -o $(LOCKS).txt
	@$(COMPILE) --extra dev -o $(LOCKS)-dev.txt
	@$(COMPILE) --extra pi -o $(LOCKS)-pi.txt
	@$(COMPILE) --extra pi-legacy -o $(LOCKS)-pi-legacy.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $(UPGRADE) \
		--constraint $(LOCKS)-pi.txt $(RPI_LGPIO).in -o $(RPI_LGPIO).txt

clean: ## everything that can be made again, .venv too
	@rm -rf .venv .virtual-pi .venv-setup.log build dist .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -rf controller/heek.egg-info
	@find controller tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: $(LOCKS).txt pyproject.toml
	@PYTHON="$(PYTHON)" controller/setup-venv $(LOCKS).txt
	@touch $@

# What develops also runs: both stamps, so that a demo after a test installs nothing again.
.venv/.installed-dev: $(LOCKS)-dev.txt pyproject.toml
	@PYTHON="$(PYTHON)" controller/setup-venv $(LOCKS)-dev.txt
	@touch .venv/.installed $@
