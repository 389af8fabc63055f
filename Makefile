# Each target sets up .venv by itself on a machine that has Python 3.11 or newer and nothing else.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-all lint bench doctor clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## see classic mistakes repaired and hostile calls killed
	$(BIN)/dispatcher demo

test: $(STAMP) ## run the fast tests
	$(BIN)/python -m pytest -q -m "not slow"

test-all: $(STAMP) ## run every test
	$(BIN)/python -m pytest -q

lint: $(STAMP) ## check style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP) ## measure one paced call against a reused, unconfined pool
	$(BIN)/python -m benchmarks dispatch

doctor: $(STAMP) ## say what this host can confine
	$(BIN)/dispatcher doctor

clean: ## remove what the targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
