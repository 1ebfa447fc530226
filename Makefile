# Two promises: `make demo` and `make test` work on a new machine with Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Flower pins versions that the development tools do not have: the deployment tests run it from an environment of its own.
FLOWER := .venv-flower
# Spark is 0.4 GB and needs Java: its tests run from an environment of their own, where Java is installed.
SPARK  := .venv-spark

.PHONY: demo test suite test-spark lint ruff mypy imports docs bench clean
.DEFAULT_GOAL := test
# Tests start many processes of sfumato: they compile it once, also where the environment says not to keep bytecode.
export PYTHONDONTWRITEBYTECODE :=

$(STAMP): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'sfumato needs Python 3.11 or newer; set PYTHON=/path/to/python3')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(FLOWER)/.installed: pyproject.toml
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[federated]"
	touch $@

demo: $(STAMP)    ## fit a private SIR on built-in data and write report.html
	$(BIN)/sfumato demo --out report.html

test:    ## everything that must hold before a change lands; environments, lint and tests beside each other
	@$(MAKE) --no-print-directory --jobs=3 lint suite

suite: $(STAMP) $(FLOWER)/.installed
	$(BIN)/python -m pytest -n 3 --dist worksteal

$(SPARK)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[spark]" "pytest>=8.3"
	touch $@

test-spark: $(SPARK)/.installed    ## the tests that need Spark and Java
	$(SPARK)/bin/python -m pytest tests/settings/test_spark.py

lint: ruff mypy imports

ruff: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

docs: $(STAMP)    ## the documentation site, warnings are errors: build/site/index.html
	$(BIN)/python docs/_site/build.py

bench: $(STAMP)    ## the long studies behind every accuracy and speed claim
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(FLOWER) $(SPARK) build report.html .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
