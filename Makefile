# Two commands on a fresh machine: `make serve` and `make test`. Everything else is listed by `make help`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard _ext/*.pyx) $(wildcard _ext/*.pxi) $(wildcard fastapi_core/_ext/*.pxd)
DATA_DIR ?= data
PORT ?= 6443
BIND ?= 127.0.0.1
SECONDS ?= 60
WIDE ?= 0
FLAGS ?=
# No controller makes the service accounts that pods need; STRICT=1 insists on them all the same.
LENIENT := $(if $(STRICT),,--disable-admission-plugins=ServiceAccount)
# Extension servers are shown a certificate that says who passes requests on to them.
PROXY := $(if $(findstring --proxy-client-cert-file,$(FLAGS))$(findstring --requestheader-client-ca-file,$(FLAGS)),,--aggregator-make-proxy-certificate)

.PHONY: help build serve test unit golden lint bench wheel debug clean

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

build: $(BIN)/fastapi-core ## .venv with the package built in place

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check 'setuptools>=77' 'Cython>=3.2,<4' 'httptools>=0.6.4' wheel

$(BIN)/fastapi-core: $(BIN)/python $(SOURCES)
	@echo 'Compiling the package: one to three minutes, once'
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --config-settings editable_mode=compat -e .
	@# An editable install leaves bytecode to the first import, which may not be allowed to write it.
	$(BIN)/python -m compileall -q fastapi_core
	@touch $@

$(VENV)/.dev: $(BIN)/fastapi-core requirements/dev.txt
	$(BIN)/pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

serve: build ## run the server on a SQLite store in ./data
	$(BIN)/fastapi-core serve --data-dir $(DATA_DIR) --secure-port $(PORT) --bind-address $(BIND) $(LENIENT) $(PROXY) $(FLAGS)

test: $(VENV)/.dev lint unit wheel ## everything CI runs

unit: $(VENV)/.dev ## the tests alone, two at a time: many of them wait for clocks and servers
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(VENV)/.dev ## ruff, mypy strict, stubs of the compiled modules, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fastapi_core._ext --ignore-missing-stub --allowlist tests/arch/stubtest-allowlist.txt --ignore-unused-allowlist
	$(BIN)/lint-imports --no-cache

wheel: $(VENV)/.dev ## wheel and sdist, installed into an empty environment and smoke-tested
	rm -rf dist build
	@echo 'Building wheel and sdist, then installing each into an empty environment: some minutes'
	$(BIN)/python -m build -q --no-isolation --outdir dist .
	$(BIN)/python tools/smoke.py dist

golden: $(VENV)/.dev ## the recorded answers of the reference, known gaps included
	$(BIN)/python -m pytest -q tests/golden --gaps

bench: $(VENV)/.dev ## load over TLS, CPU per operation beside the limit of the same run
	$(BIN)/python -m compileall -q fastapi_core
	$(BIN)/python -m bench

# The modules lie beside their stubs whatever they were built for: a build of the other kind has to go first, and after.
# Not spelled $(MAKE), with which `make -n` would run the line.
AGAIN := $(MAKE)
debug: ## build with assertions and checks for undefined behaviour, run the tests on it
	rm -f fastapi_core/_ext/*.so .venv-debug/bin/fastapi-core
	FASTAPI_CORE_DEBUG=1 $(AGAIN) VENV=.venv-debug unit; result=$$?; \
	rm -f fastapi_core/_ext/*.so .venv/bin/fastapi-core; exit $$result

soak: $(VENV)/.dev ## kill -9 rounds under load on one store, SECONDS long; before, other adversities WIDE times as long as in tests
	$(BIN)/python -m bench.soak --seconds $(SECONDS) --wide $(WIDE)

fuzz: $(VENV)/.dev ## every parser of outside bytes, SECONDS for all together
	$(BIN)/python -m tests.fuzz.engine --seconds $(SECONDS)

clean:
	rm -rf build dist *.egg-info .venv .venv-debug fastapi_core/_ext/*.so _ext/*.c
