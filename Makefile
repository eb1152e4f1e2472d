# make test   sets everything up and runs lint, types and every test
# make demo   sets everything up and shows R2D2 at work
# make lint | types | pytest | bench | clean
#
# TORCH_INDEX=... takes PyTorch from another index than pip's own, such as that of its builds without CUDA.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: setup test lint types pytest demo bench clean

setup: $(READY)

# torch comes first, so that its index may be another than that of the rest.
$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard src/r2d2/native/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

test: lint types pytest

lint: $(READY)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

demo: $(READY)
	$(BIN)/r2d2 demo

bench: $(READY)
	$(BIN)/python benchmarks/induction.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
