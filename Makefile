# Two commands do everything: `make apply` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
APPLIER := $(VENV)/.applier-installed
EVERYTHING := $(VENV)/.everything-installed
DOCS := $(VENV)/.docs-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
JOBS ?= auto
# What pytest selects by marker; nothing selects everything.
TESTS ?= not exhaustive

# Another torch than the tests', for the one that needs it: outside the repository, since it is several GB.
OTHER_TORCH ?= 2.14.1
OTHER_VENV ?= $(HOME)/.cache/patchstack-torch-$(OTHER_TORCH)

.PHONY: apply test test-all docs check types lint references other-torch clean

apply: $(APPLIER)
	$(BIN)/apply-stack --onto main --reference 2.11

test: check references
	$(BIN)/python -m pytest -n $(JOBS) -m "$(TESTS)"

test-all:
	$(MAKE) test TESTS=

# The pages, in build/docs; a warning, a link or an anchor that leads nowhere is an error.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

check: lint types

lint: $(EVERYTHING)
	$(BIN)/ruff check tooling validate tests bench
	$(BIN)/ruff format --check tooling validate tests bench

types: $(EVERYTHING)
	$(BIN)/mypy

# What cannot be had here (no network, no apt-get) is reported, and the tests that need it say "not run".
references: $(EVERYTHING)
	-$(BIN)/python -m patchstack.reference 2.11 2.13 2.14 2.6 --wheel 2.11 --wheel 2.13

other-torch: $(OTHER_VENV)/bin/python
	$(OTHER_VENV)/bin/python -m pip --disable-pip-version-check install --quiet 'torch==$(OTHER_TORCH)' --editable '.[validate]'
	@echo 'now: PATCHSTACK_OTHER_PYTHON=$(OTHER_VENV)/bin/python make test'

$(OTHER_VENV)/bin/python:
	$(PYTHON) -m venv $(OTHER_VENV)

# pyproject.toml declares what is needed; constraints.txt says which versions the tests were written with.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(APPLIER): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(DOCS): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[docs]'
	touch $@

$(EVERYTHING): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[validate,apple,test]'
	touch $@ $(APPLIER)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
