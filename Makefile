# Everything runs from a bare clone: each target makes .venv and installs what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo docs test lint types pytest boundscheck clean clean-cache

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in site/index.html"

test: lint types pytest

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

pytest: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -q

# The same tests with every index of every kernel checked; these kernels are cached apart from the others.
boundscheck: $(VENV)/.installed-test
	POWERSUM_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 -q

# Compiled code of this user; it is stamped with its sources, so that this only frees space.
clean-cache: $(VENV)/.installed
	$(BIN)/powersum cache --clear

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
