# Everything runs from a bare clone: each target makes .venv and installs what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo docs test lint types pytest boundscheck soak clean clean-cache

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[explore]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

demo: $(VENV)/.installed
	POWERSUM_HELPERS=3 $(BIN)/python examples/demo.py
	@echo
	@echo "Next:  . $(BIN)/activate"
	@echo "       powersum solve examples/clinic.bif --max cancer,bronchitis --evidence dyspnoea=yes --report answer.html"
	@echo "       powersum explore examples/clinic.bif"

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in site/index.html"

test: lint types pytest

# What every save should pass, under a minute once everything is compiled: no real data, no whole runs.
.PHONY: quick
quick: lint types
	$(BIN)/python -m pytest -n 2 -q -k "not million" --ignore tests/core/test_boundscheck.py \
		--ignore tests/model/test_rounding.py tests/test_layers.py tests/core tests/model tests/prepare tests/exact tests/generate \
		tests/bounds/test_run.py tests/bounds/gdd/test_rows.py tests/formats/test_uai.py tests/formats/test_tokens.py

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.words

# Language of the manual, of option help and of public docstrings.
.PHONY: words
words: $(VENV)/.installed-test
	$(BIN)/python -m tools.words

types: $(VENV)/.installed-test
	$(BIN)/mypy

# Compiled beforehand, for two workers would compile the same side by side; done once, this takes a second.
pytest: $(VENV)/.installed-test
	$(BIN)/powersum warmup
	$(BIN)/python -m pytest -n 2 -q

# The same tests with every index of every kernel checked; these kernels are cached apart from the others.
boundscheck: $(VENV)/.installed-test
	POWERSUM_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 -q

# The core of the tests with the oldest and the newest Numba, NumPy and Python that are claimed: about 10 minutes.
ROWS ?=
.PHONY: compat
compat:
	$(PYTHON) -m tests.compat $(ROWS)

# A pure wheel, and one with machine code for the levels of processors that this machine can run: about 5 minutes.
.PHONY: wheel
wheel: $(VENV)/.installed-test
	$(BIN)/python -m release.wheel

# What a release consists of: sdist, pure wheel and site, built and checked; twine comes with this target.
.PHONY: release
release: $(VENV)/.installed-test $(VENV)/.installed-docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'twine>=5'
	$(BIN)/python -m release.check

# Compiled code of this user; it is stamped with its sources, so that this only frees space.
clean-cache: $(VENV)/.installed
	$(BIN)/powersum cache --clear

# Random questions against brute force for MINUTES; tests of failing cases go to out/soak.
MINUTES ?= 10
SEED ?= 0
soak: $(VENV)/.installed-test
	$(BIN)/python -m soak --minutes $(MINUTES) --seed $(SEED) --jobs 2

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
