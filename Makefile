# Two commands do everything: `make apply` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
APPLIER := $(VENV)/.applier-installed
EVERYTHING := $(VENV)/.everything-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
JOBS ?= auto

.PHONY: apply test check types lint references clean

apply: $(APPLIER)
	$(BIN)/apply-stack --onto main --reference 2.11

test: check references
	$(BIN)/python -m pytest -n $(JOBS)

check: lint types

lint: $(EVERYTHING)
	$(BIN)/ruff check tooling validate tests bench
	$(BIN)/ruff format --check tooling validate tests bench

types: $(EVERYTHING)
	$(BIN)/mypy

# What cannot be had here (no network, no apt-get) is reported, and the tests that need it say "not run".
references: $(EVERYTHING)
	-$(BIN)/python -m patchstack.reference 2.11 2.13 2.14 2.6 --wheel 2.11 --wheel 2.13

# pyproject.toml declares what is needed; constraints.txt says which versions the tests were written with.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(APPLIER): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(EVERYTHING): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[validate,apple,test]'
	touch $@ $(APPLIER)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
