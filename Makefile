# `make lenet` trains LeNet on real digits; `make test` runs every check. Each builds `.venv` itself
# from any Python >= 3.11 (choose one with `make PYTHON=python3.12 ...`).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet --constraint constraints.txt

# torch's CPU build is a tenth of the size of the one with CUDA on Linux; where this index cannot be
# reached, pip takes torch from the index that it is set up with. `make TORCH_INDEX=` asks only that.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: lenet test lint unit kernels gpu newer slow lowerings sweep round-trip bench benchmark clean

lenet: $(VENV)/.examples
	$(BIN)/python examples/lenet/train.py

# Every stage runs, whether or not an earlier one failed; the last lines say which did.
STAGES := ruff format pyright imports unit property kernels newer
.PHONY: $(STAGES)
test: $(VENV)/.dev
	@failed=; for stage in $(STAGES); do \
	    echo "== $$stage"; \
	    $(MAKE) --no-print-directory $$stage || failed="$$failed $$stage"; \
	done; \
	if test -n "$$failed"; then echo "== failed:$$failed"; exit 1; fi; \
	echo "== passed: $(STAGES)"

lint: ruff format pyright imports

ruff: $(VENV)/.dev
	$(BIN)/ruff check .

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

pyright: $(VENV)/.dev
	$(BIN)/pyright

imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal --ignore tests/property \
	    --folder-times -m "not slow and not gpu"

# Random programs are made in two processes, side by side, each of which runs the same files in the
# same order: hypothesis draws numbers and strings from whatever modules a process has loaded, and
# only so are its examples the same each time.
PROPERTY := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow and not gpu"
FIRST := $(patsubst %,tests/property/test_%.py,differential dispatched forward gradients lowerings meaning)
property: $(VENV)/.dev
	@$(PROPERTY) $(FIRST) > $(VENV)/property.txt 2>&1 & \
	$(PROPERTY) tests/property $(addprefix --ignore ,$(FIRST)); second=$$?; \
	wait $$!; first=$$?; cat $(VENV)/property.txt; exit $$((first + second))

# Every kernel that the tests make is interpreted, and one of EVERY compiled for three targets, which
# takes two idle cores 2 minutes for all 1,650 of them, and busy ones 5; no GPU is needed.
EVERY ?= 4
WHICH ?= not slow and not gpu
kernels: $(VENV)/.dev
	rm -rf $(VENV)/kernels
	KERNELS=$(VENV)/kernels OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal \
	    -m "$(WHICH)" tests/kernels
	$(BIN)/python -m tests.kernels.ahead_of_time $(VENV)/kernels $(EVERY)

# Where there is a GPU: the same kernels compiled and run on it, and what else needs one; with
# compute-sanitizer on PATH also that over the kernels. `.venv` needs a torch with CUDA for it, as
# the usual index has it: `make gpu TORCH_INDEX=`.
gpu: $(VENV)/.dev
	$(BIN)/python -m pytest -q -rs -m gpu

# The half of the compiler that needs no torch, under newer Pythons, where there are any.
newer:
	@for version in 3.12 3.13; do \
	    python=$$(ls -d $$HOME/.pyenv/versions/$$version*/bin/python3 2>/dev/null | tail -n 1); \
	    python$$version -c "" 2>/dev/null && python=python$$version; \
	    test -n "$$python" || { echo "no Python $$version here, so no tests under it"; continue; }; \
	    bin=$(VENV)-$$version/bin; \
	    test -x $$bin/python || $$python -m venv $(VENV)-$$version || exit 1; \
	    $$bin/pip --disable-pip-version-check install --quiet --constraint constraints.txt \
	        hypothesis lark libcst numpy pytest pytest-timeout pytest-xdist rich syrupy || exit 1; \
	    $$bin/python -m pytest -q -n 2 -m "not slow and not gpu" \
	        tests/unit/ir tests/unit/infer tests/unit/operators tests/unit/passes tests/unit/prelude tests/unit/translate \
	        tests/features/language tests/features/numbers || exit 1; \
	done

# The programs of the tests by each lowering but torch's own; one test of SHARE, another each TURN.
NOT_SLOW := not gpu and (not slow or sampled)
SHARE ?= 1
TURN ?= 0
PROGRAMS := tests/errors tests/examples tests/features tests/models tests/ops tests/property tests/relay \
    tests/scale tests/seed tests/unit
lowerings: $(VENV)/.dev
	for lowering in evaluator torch-regions c triton-interpret; do \
	    PYRELAY_LOWERING=$$lowering SHARE=$(SHARE) TURN=$(TURN) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 \
	        --dist worksteal -m "$(NOT_SLOW) and not host" $(PROGRAMS) || exit 1; \
	done

slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -x -n 2 --dist worksteal -m "slow and not sweep and not gpu"
	$(MAKE) lowerings SHARE=4
	$(MAKE) kernels EVERY=1 WHICH="not gpu"

# Every number of float32 through every function of generated C: hours on one core.
sweep: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m sweep tests/unit/lower_c/math

# Every module of every test, at every stage, printed and read back; as Python, compiled again.
round-trip: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -x -n 2 --dist worksteal -p tests.round_trip \
	    -m "$(NOT_SLOW)" tests/errors tests/features tests/models tests/relay tests/seed tests/unit
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -x -n 2 --dist worksteal -p tests.python_again \
	    -m "$(NOT_SLOW)" tests/features tests/models tests/seed tests/relay tests/unit

# pyrelay on a CPU against its peers, in ten minutes on two idle cores: a table, and docs/performance.svg.
benchmark: $(VENV)/.dev
	$(PIP) --editable ".[benchmarks]"
	$(BIN)/python -m benchmarks.performance
	$(BIN)/python -m benchmarks.performance_plot docs/performance.svg

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.lenet
	$(BIN)/python -m benchmarks.compile_time
	$(BIN)/python -m benchmarks.import_time
	$(BIN)/python -m benchmarks.calls
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.transforms
	$(BIN)/python -m benchmarks.specialise
	$(BIN)/python -m benchmarks.gpu

clean:
	rm -rf $(VENV) $(VENV)-3.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "pyrelay needs Python >= 3.11; say which: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.1"
	$(PIP) $(if $(TORCH_INDEX),--retries 1 --extra-index-url $(TORCH_INDEX)) --no-deps torch
	@touch $@

$(VENV)/.examples: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[examples]"
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[examples,triton]" --group dev
	@touch $@
