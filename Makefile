# CI runs the same targets as you: `make demo`, `make test`, `make check-slow`.
# Needs Python (3.11 or newer), pip and make; everything else goes into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests of one file run in one process: they share what is slow to make.
PARALLEL := -n auto --maxprocesses 8 --dist loadfile

.PHONY: help demo test lint types check-slow test-oldest test-newest test-engines docs package bench mutants fuzz quality reproduce reproduce-quick clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

demo: $(VENV)/.demo  ## Install, and audit the labels of the built-in digits
	$(BIN)/looselabels demo

test: lint types  ## Run lint, type checks, doctests and tests (about 10 minutes)
	$(BIN)/python -m pytest $(PARALLEL)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

check-slow: $(VENV)/.test $(VENV)/.bench $(VENV)/.docs $(VENV)/.package  ## Run the slow tests
	$(BIN)/python -m pytest -m slow $(PARALLEL)

test-oldest:  ## Run the tests with the oldest supported versions (Python 3.11)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet -e '.[test]' -c tests/oldest.txt
	.venv-oldest/bin/python -m pytest $(PARALLEL)

test-newest:  ## Run the tests with the newest versions (PYTHON=python3.13)
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager -e '.[test]'
	.venv-newest/bin/python -m pytest $(PARALLEL)

test-engines:  ## Run the code of docs/scale.md with Spark (needs Java), Ray, LightGBM and XGBoost
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet -e '.[engines]'
	.venv-engines/bin/python -m pytest -m slow tests/test_engines.py

docs: $(VENV)/.docs  ## Build the documentation site in build/docs, without network
	$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

package: $(VENV)/.package  ## Build wheel and sdist in dist/, and try them in empty environments
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/package.py --python $(PYTHON)

bench: $(VENV)/.bench  ## Print the speed tables of benchmarks/README.md
	$(BIN)/python benchmarks/bench_infer.py
	$(BIN)/python benchmarks/bench_scale.py
	$(BIN)/python benchmarks/bench_classifier.py
	$(BIN)/python benchmarks/bench_density.py
	$(BIN)/python benchmarks/bench_audit.py

mutants: $(VENV)/.test  ## Change the numerics at 300 places; do the tests notice? (an hour; resumes)
	$(BIN)/python tests/mutants.py run

fuzz: $(VENV)/.test  ## Damage files of all formats at random (FUZZ_SECONDS for each, 60 if not set)
	$(BIN)/python -m tests.fuzz --seconds $(or $(FUZZ_SECONDS),60)

quality: $(VENV)/.bench  ## Compare with other libraries, update docs/quality.md (1 to 2 hours; resumes)
	$(BIN)/python -m benchmarks.quality run
	$(BIN)/python -m benchmarks.quality table --write

reproduce: $(VENV)/.test  ## Run the experiments of the paper (hours; resumes; LOOSELABELS_DATA)
	$(BIN)/python -m experiments run
	$(BIN)/python -m experiments plot
	$(BIN)/python -m experiments claims

reproduce-quick: $(VENV)/.test  ## Run a small part of them (under 3 minutes), in experiments/results/quick
	rm -rf experiments/results/quick
	$(BIN)/python -m experiments run --quick
	$(BIN)/python -m experiments plot --results experiments/results/quick --out experiments/results/quick

clean:  ## Remove the virtual environment and caches
	rm -rf build dist docs/gallery docs/_generated $(VENV) .venv-oldest .venv-newest .venv-engines .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp file per set of dependencies, renewed when pyproject.toml changes.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	@touch $@

$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@
