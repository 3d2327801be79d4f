# Everything a newcomer or a build machine types. `make install` makes .venv; the other targets call it when it is out of date.
.PHONY: install quickstart test check lint type proto up down bench clean
.DEFAULT_GOAL := install

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH ?= torch==2.13.0
ARGS ?=

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: $(PYTHON) not found; run: sudo apt-get install -y python3 python3-venv" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $$($(PYTHON) --version) is too old, Python 3.11 or newer is needed; name one: make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) has no venv module; run: sudo apt-get install -y python3-venv" >&2; exit 2; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(TORCH) -e '.[dev]'
	@touch $@

quickstart: install
	$(BIN)/journeyman quickstart $(ARGS)

test: install
	$(BIN)/python -m pytest $(ARGS)

check: lint type
	$(BIN)/python tools/gen_proto.py --check
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/architecture

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: install
	$(BIN)/mypy

proto: install
	$(BIN)/python tools/gen_proto.py

up:
	deploy/make-env
	docker compose up --build --detach --wait

down:
	docker compose down

bench: install
	@for module in $$(cd benchmarks && grep -l '__main__' *.py 2>/dev/null | sed 's/\.py$$//'); do \
	  $(BIN)/python -m benchmarks.$$module --json - $(ARGS) || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
