# Everything runs in .venv, which these targets make from pyproject.toml and constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export MPLBACKEND := Agg
# Else every process that tests and examples start compiles the library again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test simulation check complexity fuzz bench docs oldest imports reproduce clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

.venv/.dev: .venv/.base
	$(PIP) --editable '.[dev]'
	@touch $@

.venv/.docs: .venv/.base
	$(PIP) --editable '.[docs]'
	@touch $@

demo: .venv/.base  ## compare seven methods on a small network (a minute)
	$(BIN)/ssdfl run

# Tests of pages need chromium and chromedriver on the PATH, tests of two machines need root and iproute2.
# Without them these tests are skipped and say so. .ci/run installs what is missing where it can.
# Two workers begin with meshes, which mostly wait, and one with all else: that fills two cores.
# Workers take tests in the order of tests/conftest.py.
test: .venv/.dev  ## run the test suite
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder

simulation: .venv/.dev  ## run the tests of everything but real devices
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not mesh" --ignore tests/mesh --ignore tests/cli/test_mesh.py

check: .venv/.dev  ## format, lint, spelling, types, complexity, doctests, examples
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/python .ci/complexity.py
	$(BIN)/pytest --quiet --doctest-modules src
	for example in examples/*.py; do echo "== $$example"; $(BIN)/python $$example || exit 1; done

complexity: .venv/.dev  ## print the mean cyclomatic complexity, and what is above the limit
	$(BIN)/python .ci/complexity.py

fuzz: .venv/.dev  ## a minute of nearly right inputs for every reader (half an hour)
	$(BIN)/python tests/fuzz/run.py --seconds 60

bench: .venv/.dev  ## measure engine and formation on this machine (ratios)
	$(PIP) --editable '.[peers]'
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/rules.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/formation.py
	$(BIN)/python benchmarks/gaps.py
	$(BIN)/python benchmarks/mesh.py

docs: .venv/.docs  ## build the documentation into build/site
	PYTHONPATH=docs $(BIN)/zensical build --strict --clean

oldest:  ## try the oldest versions of dependencies that pyproject.toml allows
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python .ci/oldest.py mesh pandas > build/oldest.txt
	build/oldest/bin/python -m pip install --quiet --requirement build/oldest.txt pytest hypothesis
	PYTHONPATH=src build/oldest/bin/python -m pytest --quiet -o filterwarnings=default \
		tests/records tests/learning tests/graph/test_files.py tests/report/test_report.py

imports: .venv/.base  ## draw again which package imports which
	$(BIN)/python docs/images/imports.py

ARTEFACTS ?= fmnist-taur fmnist-taur1 fmnist-taua fmnist-size fmnist-architecture
PROFILE ?= small
reproduce: .venv/.base  ## the paper's tables and figures (ARTEFACTS=all PROFILE=paper for everything; continues where it stopped)
	$(BIN)/ssdfl reproduce $(ARTEFACTS) --profile $(PROFILE)

clean:  ## remove what the other targets made, except runs/
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
