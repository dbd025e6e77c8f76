# `make lenet` trains LeNet on real digits; `make test` runs every check. Each builds `.venv` itself
# from any Python >= 3.11 (choose one with `make PYTHON=python3.12 ...`).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet --constraint constraints.txt

# torch's CPU build is a tenth of the size of the one with CUDA that PyPI gives on Linux; where this
# index cannot be reached, pip takes torch from the usual one.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: lenet test lint unit slow bench clean

lenet: $(VENV)/.examples
	$(BIN)/python examples/lenet/train.py

test: lint unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not gpu and not alone"
	$(BIN)/python -m pytest -q -m alone tests/test_house.py

slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -x -n 2 --dist worksteal -m "slow and not gpu"

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/lenet.py
	$(BIN)/python benchmarks/compile_time.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "pyrelay needs Python >= 3.11; say which: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.1"
	$(PIP) --retries 1 --no-deps --extra-index-url $(TORCH_INDEX) torch
	@touch $@

$(VENV)/.examples: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[examples]"
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[examples,fix]" --group dev
	@touch $@
