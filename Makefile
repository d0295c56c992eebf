# The two commands: `make up` shows the product working, `make test` proves it. Nothing else to set up.

PYTHON ?= python3
PORT ?= 8000
M3_DEMO ?= 1
VENV := .venv
BIN := $(VENV)/bin
NODE := tests/node/node_modules/.installed
PEERS := $(patsubst tests/peers/%.in,tests/peers/.venv-%/.installed,$(wildcard tests/peers/*.in))
BENCH_PEERS := $(patsubst benchmarks/peers/%.in,benchmarks/peers/.venv-%/.installed,$(wildcard benchmarks/peers/*.in))
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help up test test-sqlite test-postgres check api-check format lock conformance bench system-packages clean

help:
	@echo "make up           start M3 Web with a demo on http://127.0.0.1:$(PORT) (PORT=, M3_DEMO=0 for an empty one)"
	@echo "make test         install what the tests need and run them all (test-sqlite, then test-postgres)"
	@echo "make check        lint, types, import rules, migrations"
	@echo "make api-check    call every address of the API with good and bad data and compare it with its description"
	@echo "make conformance  run the protocol's own client scenarios against our client"
	@echo "make bench        print the benchmarks' ratios"
	@echo "make format       reformat the code; make lock: resolve the dependencies anew"

up: $(VENV)/.base
	@M3_DEMO=$(M3_DEMO) exec $(BIN)/python manage.py up --port $(PORT)

test: test-sqlite test-postgres

test-sqlite: $(VENV)/.dev $(NODE) $(PEERS) system-packages
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-postgres: $(VENV)/.dev system-packages
	$(BIN)/python -m tests.on_postgres $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING

api-check: $(VENV)/.dev
	M3_TEST_REPEATS=$${M3_TEST_REPEATS:-500} $(BIN)/python -m pytest tests/api/test_api_check.py $(PYTEST_ARGS)

conformance: $(VENV)/.dev $(NODE)
	$(BIN)/python -m pytest tests/conformance $(PYTEST_ARGS)

bench: $(VENV)/.dev $(BENCH_PEERS) system-packages
	$(BIN)/python -m benchmarks

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(VENV)/.dev
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--quiet pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--quiet pyproject.toml --extra scale -o requirements/scale.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--quiet pyproject.toml --extra scale --group dev -o requirements/dev.txt
	@for peer in $(wildcard tests/peers/*.in benchmarks/peers/*.in); do \
		python=$$(sed -n 's/^# python: //p' $$peer); \
		$(BIN)/uv pip compile --universal --python-version $${python:-3.11} --generate-hashes --no-emit-index-url \
			--no-header --no-strip-extras --quiet $$peer -o $${peer%.in}.txt || exit 1; done

# A virtual environment from locked, hashed packages. A bare Debian has python3 without venv; as root we add it.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "M3 Web needs Python 3.11 or newer; set PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); .ci/debian python3-venv && $(PYTHON) -m venv $(VENV); } || \
		{ rm -rf $(VENV); echo "Cannot make a virtual environment; install python3-venv." >&2; exit 1; }

$(VENV)/.base: requirements/base.txt | $(VENV)/bin/python
	@echo "Installing M3 Web's packages (once)..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(VENV)/.base
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

# The browser and the servers that the tests drive. What cannot be had is skipped loudly by the tests, and is a
# failure under M3_REQUIRE_ALL=1.
system-packages:
	@command -v chromium-headless-shell >/dev/null 2>&1 || .ci/debian chromium-headless-shell fonts-liberation || \
		command -v chromium >/dev/null 2>&1 || .ci/debian chromium fonts-liberation || true
	@command -v setpriv >/dev/null 2>&1 || .ci/debian util-linux || true
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || \
		.ci/debian postgresql || true
	@command -v redis-server >/dev/null 2>&1 || .ci/debian redis-server || true
	@test -x /usr/sbin/ip || command -v ip >/dev/null 2>&1 || .ci/debian iproute2 || true

$(NODE): tests/node/package-lock.json
	@command -v npm >/dev/null 2>&1 || .ci/debian npm || true
	@if command -v npm >/dev/null 2>&1; then \
		(cd tests/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) && touch $@; \
	else echo "npm is not here, so the servers from npm are not tested." >&2; fi

# Software that tests and benchmarks compare us with or talk to, each in an environment of its own: nothing of it is ever
# imported by ours. peers/NAME.in says what, peers/NAME.txt is its lock. A line "# python: VERSION" in the former is for
# metadata that ask for more than our 3.11 without needing it: it is locked for that version and installed on ours.
define install_peer
	@echo "Installing the peer $* (once)..."
	@if $(BIN)/python -m venv --clear $(@D) && $(@D)/bin/python -m pip install --quiet \
			--disable-pip-version-check --require-hashes \
			$$(sed -n 's/^# python: .*/--ignore-requires-python/p' $(<:.txt=.in)) -r $<; then touch $@; \
	else rm -rf $(@D); echo "The peer $* is not here, so what needs it is not run." >&2; fi
endef

tests/peers/.venv-%/.installed: tests/peers/%.txt | $(VENV)/bin/python
	$(install_peer)

benchmarks/peers/.venv-%/.installed: benchmarks/peers/%.txt | $(VENV)/bin/python
	$(install_peer)

clean:
	rm -rf $(VENV) tests/peers/.venv-* benchmarks/peers/.venv-* tests/node/node_modules .mypy_cache .ruff_cache .pytest_cache
