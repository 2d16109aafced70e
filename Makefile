# The whole developer interface.  `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# A file's tests in one process, and files in the order of tests/conftest.py.
IN_PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder

# Where the public data sets of the tests are; read by tests/conftest.py.
export CONCLAVE_TEST_DATA

# Bytecode is kept, whatever the environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: check help install install-test demo serve test lint format docs coverage proofs bench bench-utility audit lock image image-replicas clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^##  *//p' $(MAKEFILE_LIST)

##  make install               .venv with .venv/bin/conclave in it
##  make demo [ARGS=...]       open, serve and query a release on generated data; Ctrl-C ends
##  make serve CONFIG=FILE     serve your own data
##  make test [ARGS=...]       the whole suite
##  make check                 lint, types, import rules and the quick tests: the loop while you work
##  make lint                  ruff, strict types, import rules
##  make format                let ruff format the sources
##  make coverage              branches of the pure packages that no test takes; fails on one
##  make proofs                check theorems and tables by machine (coq, mathcomp, zarith)
##  make docs                  print docs/settings.md anew from the settings
##  make bench [ARGS=...]      the benchmarks, or those named, and one table of ratios
##  make bench-utility [ARGS=...]  accuracy and answers beside other methods, docs/utility.md
##  make audit                 the long audits
##  make lock                  compile every lock anew
##  make image                 build the container image and check that it serves
##  make image-replicas        the same of three servers on PostgreSQL, behind a balancer
##  make clean                 remove .venv and the caches

$(BIN)/python:
	@PYTHON="$(PYTHON)" sh .ci/make-venv $(VENV)

# Hashes are checked and nothing else is fetched: the project itself is built
# by the locked backend, without an isolated build environment.  Two path entries, the
# client's and the server's, start faster than the import hook of one install with two roots.
$(VENV)/.installed: requirements.lock pyproject.toml clients/python/pyproject.toml $(BIN)/python
	@echo "Installing into $(VENV) from requirements.lock ..."
	@$(PIP) install --quiet --no-deps --require-hashes --requirement requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable clients/python
	@$(PIP) install --quiet --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	@touch $@

# pandas lies in a folder that only the tests with data frames search: see tests/frames.
$(VENV)/.installed-test: requirements-test.lock tests/frames/requirements.lock $(VENV)/.installed
	@echo "Installing the test extras from requirements-test.lock ..."
	@$(PIP) install --quiet --no-deps --require-hashes --requirement requirements-test.lock
	@rm -rf $(VENV)/frames
	@$(PIP) install --quiet --no-deps --require-hashes --target $(VENV)/frames --requirement tests/frames/requirements.lock
	@touch $@

# Clients of other servers whose libraries contradict the lock's, in a folder that
# only their own processes search.
$(VENV)/.installed-peers: tests/peers/requirements.lock $(VENV)/.installed-test
	@echo "Installing into $(VENV)/peers from tests/peers/requirements.lock ..."
	@rm -rf $(VENV)/peers
	@$(PIP) install --quiet --no-deps --require-hashes --target $(VENV)/peers --requirement tests/peers/requirements.lock
	@touch $@

install: $(VENV)/.installed

install-test: $(VENV)/.installed-test

demo: install
	@$(BIN)/conclave demo $(ARGS)

serve: install
	@$(BIN)/conclave serve $(if $(CONFIG),--config "$(CONFIG)")

test: install-test $(VENV)/.installed-peers
	@$(BIN)/python -m pytest -m "not long" $(IN_PARALLEL) $(ARGS)

# Tests that need no server, browser or second process, and no second of their own.
check: lint
	@$(BIN)/python -m pytest -q -m "not (slow or long or audit or crash or browser)" $(IN_PARALLEL) $(ARGS) tests/unit tests/conformance tests/property tests/tidy

lint: install-test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: install-test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

coverage: install-test
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m pytest -q -m "not long" $(IN_PARALLEL) -p tests.covered tests/unit tests/property tests/conformance
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

docs: install-test
	@$(BIN)/python -m tests.docs.settings_page > docs/settings.md

proofs:
	@$(PYTHON) -m proofs.build

bench: install-test
	@$(BIN)/python -m benchmarks.measuring.all_questions $(ARGS)

bench-utility: install-test
	@$(BIN)/python -m benchmarks.utility $(ARGS)

# Side by side, whoever is done takes over what others have before them; then, alone, what
# measures times to microseconds.  The second part runs whatever the first one found.
audit: install-test
	@$(BIN)/python -m pytest -m "audit or crash or long" --ignore tests/timing --numprocesses auto --dist worksteal $(ARGS); \
	first=$$?; $(BIN)/python -m pytest -m long tests/timing && exit $$first

# The compiler of the locks comes from the `lock` extra, into .venv.  Every
# environment that the README names is in one file, by markers; the address of
# the index that was asked is left out.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --upgrade \
	--index-strategy first-index

lock: $(BIN)/python
	@$(PIP) install --quiet "uv>=0.13"
	$(COMPILE) pyproject.toml --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra dask --extra grpc --extra oidc --extra s3 --extra telemetry --constraint requirements.lock --output-file requirements-image.lock
	$(COMPILE) pyproject.toml --extra test --constraint requirements.lock --output-file requirements-test.lock
	$(COMPILE) --no-deps tests/frames/requirements.in --output-file tests/frames/requirements.lock
	$(COMPILE) --no-deps tests/peers/requirements.in --output-file tests/peers/requirements.lock
	$(COMPILE) benchmarks/peers/requirements.in --output-file benchmarks/peers/requirements.lock
	$(COMPILE) benchmarks/utility/requirements.in --output-file benchmarks/utility/requirements.lock
	$(COMPILE) --no-deps benchmarks/flights/requirements.in --output-file benchmarks/flights/requirements.lock
	$(COMPILE) --no-deps benchmarks/panel/requirements.in --output-file benchmarks/panel/requirements.lock

image:
	@sh .ci/check-image

image-replicas:
	@sh .ci/check-replicas

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info clients/python/build clients/python/*.egg-info
