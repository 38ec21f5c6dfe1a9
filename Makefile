# Everything runs from .venv, which these targets make and keep up to date with pyproject.toml.
# Another interpreter: make PYTHON=/path/to/python3.12 demo

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CANDIDATES := $(or $(PYTHON),python3 python python3.14 python3.13 python3.12 python3.11)
PROTO := accord/wire/agui.proto
PROTOC := $(BIN)/protoc --proto_path=src
BASE := accord accord.protocol accord.wire accord.state accord.consumer accord.producer accord.client accord.agents accord.cli

.PHONY: demo test check lint types layers generated wheel proto bench clean

demo: $(VENV)/.server
	@$(BIN)/accord demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

check: lint types layers generated wheel

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# The binary wire's module is what the compiler makes of agui.proto today.
generated: $(VENV)/.dev
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PROTOC) --python_out="$$scratch" --pyi_out="$$scratch" $(PROTO); \
	for file in "$$scratch"/accord/wire/*; do \
		cmp "$$file" "src/accord/wire/$${file##*/}" || { echo "make proto writes it anew" >&2; exit 1; }; \
	done; \
	echo "agui_pb2: up to date"

proto: $(VENV)/.dev
	$(PROTOC) --python_out=src --pyi_out=src $(PROTO)

# The wheel, installed with the base dependencies alone, gives everything that needs no extra.
wheel: $(VENV)/.dev
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(BIN)/python -m build --wheel --no-isolation --outdir "$$scratch" . >"$$scratch/log" 2>&1 || { cat "$$scratch/log"; exit 1; }; \
	$(BIN)/python -m venv "$$scratch/venv"; \
	"$$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$$scratch"/*.whl; \
	cd "$$scratch"; \
	for package in $(BASE); do venv/bin/python -c "import $$package" || exit 1; done; \
	venv/bin/accord --help >/dev/null; \
	echo "wheel: imports with its base dependencies"

# Accord beside its peers, each side in an environment of its own under .bench; writes docs/benchmarks.md. Needs Node.
bench: | $(BIN)/pip
	@$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) .bench build dist tests/node/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.server: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[server]'
	@touch $@

# What .dev brings holds what .server brings.
$(VENV)/.dev: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.server

# pip is the last thing that venv puts in place: where it is, the environment is whole.
$(BIN)/pip:
	@for python in $(CANDIDATES); do \
		if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$python -m venv $(VENV)"; \
			exec "$$python" -m venv $(VENV); \
		fi; \
	done; \
	echo "Accord needs Python 3.11 or newer with its venv module (on Debian: apt install python3-venv)." >&2; \
	echo "Tried: $(CANDIDATES). To name another: make PYTHON=/path/to/python3 ..." >&2; \
	exit 1
