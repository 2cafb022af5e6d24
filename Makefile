# Two commands on a fresh machine: `make serve` and `make test`. Everything else is listed by `make help`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard _ext/*.pyx) $(wildcard fastapi_core/_ext/*.pxd)
DATA_DIR ?= data
PORT ?= 6443

.PHONY: help build serve test unit golden lint bench wheel debug clean

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

build: $(BIN)/fastapi-core ## .venv with the package built in place

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check 'setuptools>=77' 'Cython>=3.2,<4' 'httptools>=0.6.4' wheel

$(BIN)/fastapi-core: $(BIN)/python $(SOURCES)
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --config-settings editable_mode=compat -e .
	@# An editable install leaves bytecode to the first import, which may not be allowed to write it.
	$(BIN)/python -m compileall -q fastapi_core
	@touch $@

$(VENV)/.dev: $(BIN)/fastapi-core requirements/dev.txt
	$(BIN)/pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

serve: build ## run the server on a SQLite store in ./data
	$(BIN)/fastapi-core serve --data-dir $(DATA_DIR) --secure-port $(PORT)

test: $(VENV)/.dev lint unit wheel ## everything CI runs

unit: $(VENV)/.dev ## the tests alone
	$(BIN)/python -m pytest -q

lint: $(VENV)/.dev ## ruff, mypy strict, stubs of the compiled modules, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fastapi_core._ext --ignore-missing-stub --allowlist tests/arch/stubtest-allowlist.txt --ignore-unused-allowlist
	$(BIN)/lint-imports --no-cache

wheel: $(VENV)/.dev ## wheel and sdist, installed into an empty environment and smoke-tested
	rm -rf dist build
	$(BIN)/python -m build -q --no-isolation --outdir dist .
	$(BIN)/python tools/smoke.py dist

golden: $(VENV)/.dev ## the recorded answers of the reference, known gaps included
	$(BIN)/python -m pytest -q tests/golden --gaps

bench: $(VENV)/.dev ## load over TLS, CPU per operation beside the limit of the same run
	$(BIN)/python -m compileall -q fastapi_core
	$(BIN)/python -m bench

debug: ## build with assertions and counters of live objects, run the tests on it
	FASTAPI_CORE_DEBUG=1 $(MAKE) VENV=.venv-debug unit

clean:
	rm -rf build dist *.egg-info .venv .venv-debug fastapi_core/_ext/*.so _ext/*.c
