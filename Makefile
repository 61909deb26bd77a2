# Everything runs in .venv, which each target makes or updates first when pyproject.toml has changed. The demo needs
# Penstock alone; the tests need its dev extras.

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
PYTEST_ARGS ?=
# Processes that share the tests.
PROCESSES ?= 2

# The first Python that is new enough; an existing .venv is kept.
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	&& echo $$p && break; done)

.PHONY: help demo test lint types docs unit compat jobs connectors browser matrix hooks web web-check web-if-possible \
	bench chaos release-check wheel venv java servers servers-if-possible packages clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    a word count over an endless text, about 15 seconds"
	@echo "make test    sets up what it can, then lint, types, the documentation site and all tests (PROCESSES=4 PYTEST_ARGS=\"-x\")"
	@echo "make lint    ruff: rules and format"
	@echo "make types   mypy: --strict for the package"
	@echo "make docs    build the documentation site in build/docs/html"
	@echo "make unit    only tests/unit; so do compat (tests/golden, tests/pyflink), jobs, connectors and browser"
	@echo "make matrix  tests on each Python and PySpark of .ci/matrix.json that is here (MATRIX_ARGS=\"--python 3.13\")"
	@echo "make hooks   lint and types before each commit"
	@echo "make web     build the dashboard from web/ into the package (needs Node 20 or newer)"
	@echo "make bench   throughput measurements"
	@echo "make chaos   kill processes of a job at random, and check its results (CHAOS_ARGS=\"--rounds 50 --seed 7\")"
	@echo "make release-check  build the distributions, install them on each Python that is here, run them (RELEASE_ARGS=\"--python 3.12\")"
	@echo "make wheel   build the wheel in dist/, for deploy/Dockerfile"
	@echo "make servers what some tests need: Kafka, PostgreSQL, MariaDB, Redis, Chromium (without them they are skipped)"
	@echo "make venv    only set up .venv, with what jobs need"
	@echo "make clean   remove .venv and caches"

demo: venv java
	@$(BIN)/python -m penstock.demo

# Single tests are dealt out, and a process that is done takes over some of another's. Whole jobs start many processes and
# share servers: there a file stays together.
SINGLE_TESTS := -n $(PROCESSES) --dist worksteal
WHOLE_FILES  := -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
PYTEST := $(BIN)/python -m pytest $(PYTEST_ARGS)

# All tests run, even if one of the first half fails; what was skipped is said last.
RESULTS := build/test-results

test: lint types docs java servers-if-possible web-if-possible
	@rm -rf $(RESULTS); failed=0; set -x; \
	$(PYTEST) $(SINGLE_TESTS) --junitxml=$(RESULTS)/single.xml tests/unit tests/golden tests/pyflink || failed=1; \
	$(PYTEST) $(WHOLE_FILES) --junitxml=$(RESULTS)/whole.xml tests/jobs tests/connectors tests/browser || failed=1; \
	{ set +x; } 2>/dev/null; $(BIN)/python .ci/skipped.py $(RESULTS); \
	exit $$failed

unit: $(DEV) java
	$(PYTEST) $(SINGLE_TESTS) tests/unit

compat: $(DEV) java
	$(PYTEST) $(SINGLE_TESTS) tests/golden tests/pyflink

jobs connectors browser: $(DEV) java
	$(PYTEST) $(WHOLE_FILES) tests/$@

matrix: java
	@test -n "$(PYTHON)" || { echo "There is no Python 3.10 or newer to start with." >&2; exit 1; }
	$(PYTHON) .ci/matrix.py $(MATRIX_ARGS)

hooks: $(DEV)
	$(BIN)/pre-commit install

PYTHON_CODE := src tests .ci $(wildcard examples benchmarks chaos docs/site)

lint: $(DEV)
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)

types: $(DEV)
	$(BIN)/mypy

# The site needs no network, neither to build nor to read. A warning, such as a link that leads nowhere, is an error.
docs: $(DEV)
	$(BIN)/python docs/site/build.py build/docs

# The dashboard: what is built is committed, so that nobody needs Node to install Penstock.
STATIC := src/penstock/rest/static

web: web/node_modules/.installed
	cd web && npm run --silent build

# Where there is Node: the committed files are exactly what the sources give.
web-check: web/node_modules/.installed
	@built="$$(mktemp -d)"; trap 'rm -rf "$$built"' EXIT; \
	(cd web && PENSTOCK_WEB_OUT="$$built" npm run --silent build) && diff -r "$$built" $(STATIC) \
	  || { echo "$(STATIC) is not what web/ gives: run \`make web\` and commit it." >&2; exit 1; }

web-if-possible:
	@if command -v npm >/dev/null 2>&1 && $(MAKE) --no-print-directory web/node_modules/.installed; then \
	  $(MAKE) --no-print-directory web-check; \
	else \
	  echo "There is no Node, or no registry: only a test compares the dashboard's files with its sources." >&2; \
	fi

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --silent
	@touch $@

chaos: $(DEV) java
	$(BIN)/python -m chaos.run $(CHAOS_ARGS)

# What a release would consist of; the source distribution and the wheel are in dist/ afterwards.
release-check: java
	@test -n "$(PYTHON)" || { echo "There is no Python 3.10 or newer to start with." >&2; exit 1; }
	$(PYTHON) .ci/release_check.py $(RELEASE_ARGS)

wheel: venv
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

bench: $(DEV) java
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

venv: $(STAMP)

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { \
	  echo "Penstock needs Python 3.10 or newer, and no python3 on the PATH is; install one (Debian: apt-get install python3 python3-venv)." >&2; \
	  exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment; install its venv module (Debian: apt-get install python3-venv)." >&2; \
	  exit 1; }
	@echo "Installing Penstock and what it needs into $(VENV): Spark (450 MB), Arrow, NumPy, pandas"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(DEV): $(STAMP)
	@echo "Installing what the tests need: Flink's planner (330 MB), clients of Kafka, PostgreSQL, MySQL and Redis, pytest, ruff, mypy"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Java 17 or newer from JAVA_HOME or the PATH; on Debian, root gets it installed.
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major() { "$$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }; \
	found="$$(major "$$java" 2>/dev/null)"; \
	if [ "$${found:-0}" -ge 17 ]; then exit 0; fi; \
	if [ -z "$${JAVA_HOME:-}" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq; \
	  for package in openjdk-17-jre-headless default-jre-headless; do \
	    echo "Installing Java ($$package)"; \
	    apt-get install -y -qq $$package >/dev/null || continue; \
	    found="$$(major java 2>/dev/null)"; \
	    if [ "$${found:-0}" -ge 17 ]; then exit 0; fi; \
	  done; \
	fi; \
	echo "Penstock needs Java 17 or newer ($${found:+found version $$found at }$${found:+$$java; }install openjdk-17-jre-headless and set JAVA_HOME or the PATH)." >&2; \
	exit 1

# Real servers for tests/connectors: a Kafka broker from Maven's repository, the others from Debian's packages. And a
# browser for tests/browser.
SERVERS := .servers
BROKER  := tests/connectors/broker.pom.xml
KAFKA_VERSION ?=

servers: java packages $(SERVERS)/kafka/.fetched

servers-if-possible:
	@$(MAKE) --no-print-directory -k servers || echo "Tests that need what is missing are skipped." >&2

packages:
	@for needed in initdb:postgresql mariadb-install-db:mariadb-server redis-server:redis-server mvn:maven chromium:chromium; do \
	  program=$${needed%%:*}; package=$${needed##*:}; \
	  if command -v $$program >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/$$program >/dev/null 2>&1; then continue; fi; \
	  missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then \
	    echo "Missing for some tests:$$missing; install them (Debian: apt-get install$$missing)." >&2; exit 1; \
	  fi; \
	  echo "Installing$$missing"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; \
	fi

$(SERVERS)/kafka/.fetched: $(BROKER)
	@rm -rf $(SERVERS)/kafka
	@echo "Fetching a Kafka broker from Maven's repository (45 MB)"
	@mvn -q -B -f $(BROKER) dependency:copy-dependencies -DincludeScope=runtime \
	  -DoutputDirectory=$(CURDIR)/$(SERVERS)/kafka $(if $(KAFKA_VERSION),-Dkafka.version=$(KAFKA_VERSION))
	@touch $@

clean:
	rm -rf $(VENV) .matrix web/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
