# Each goal sets up all that it needs, and no more: a .venv with spdsl in it (and with the tests' tools, where they are
# needed), made on first use and again when pyproject.toml changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
PEERS  := $(VENV)/.peers
# Two cores: one BLAS thread a process is fastest on the small systems that spdsl solves.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: help demo test lint format bench-path bench-online bench-metric bench-graph coverage dist clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(INSTALLED): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "spdsl needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY): $(INSTALLED)
	@echo "adding what tests and lint need (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(PEERS): $(READY)
	@echo "adding what benches are measured against (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[peers]'
	@touch $@

demo: $(INSTALLED)  ## the main job: a self-paced Lasso's age-path on real data, each age held against CVX
	$(BIN)/spdsl demo

test: $(READY)  ## the tests, on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)  ## ruff, mypy (strict) and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## write the one layout of the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-path: $(READY)  ## age-paths against alternate search over scikit-learn (SETS="music cadata"; the data in SPDSL_DATA)
	PYTHONPATH=. $(BIN)/python examples/gaga/bench_path.py $(SETS) --sp linear mixture

bench-online: $(PEERS)  ## dual averaging against SGDClassifier and Vowpal Wabbit
	$(BIN)/python examples/dual_averaging/bench_online.py

bench-metric: $(READY)  ## COMID's steps against full eigendecompositions
	$(BIN)/python examples/metric/bench_metric.py

bench-graph: $(PEERS)  ## projections onto connected supports against bisection on pcst-fast2 (QUICK=1: no 300 x 300)
	$(BIN)/python examples/graph/bench_graph.py $(if $(QUICK),--quick)

coverage: $(READY)  ## line and branch coverage of spdsl/ and solvers/
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --skip-covered

dist: $(READY)  ## the wheel and the source archive
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build

clean:  ## remove what was made here, the .venv too
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
