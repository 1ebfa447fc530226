# Two promises: `make demo` and `make test` work on a new machine with Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Flower pins versions that the development tools do not have: the deployment tests run it from an environment of its own.
FLOWER := .venv-flower
# Spark is 0.4 GB and needs Java: its tests run from an environment of their own, where Java is installed.
SPARK  := .venv-spark

.PHONY: demo test test-spark lint docs bench clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'sfumato needs Python 3.11 or newer; set PYTHON=/path/to/python3')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(FLOWER)/.installed: pyproject.toml $(STAMP)
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[federated]"
	touch $@

demo: $(STAMP)    ## fit a private SIR on built-in data and write report.html
	$(BIN)/sfumato demo --out report.html

test: $(STAMP) $(FLOWER)/.installed lint    ## everything that must hold before a change lands
	$(BIN)/python -m pytest -n 3 --dist worksteal

$(SPARK)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[spark]" "pytest>=8.3"
	touch $@

test-spark: $(SPARK)/.installed    ## the tests that need Spark and Java
	$(SPARK)/bin/python -m pytest tests/settings/test_spark.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)    ## the documentation site, warnings are errors: build/site/index.html
	$(BIN)/python docs/_site/build.py

bench: $(STAMP)    ## the long studies behind every accuracy and speed claim
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(FLOWER) $(SPARK) build report.html .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
