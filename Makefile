# Two promises: `make demo` and `make test` work on a new machine with Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Flower pins versions that the development tools do not have: the deployment tests run it from an environment of its own.
FLOWER := .venv-flower
# Spark is 0.4 GB and needs Java: its tests run from an environment of their own, where Java is installed.
SPARK  := .venv-spark

# The versions of Flower that the site and the server of our own are tested with; pyproject.toml has the range.
VERSIONS := 1.41 1.42
# Those of the app on Flower's public interface.
PUBLIC := 1.36 1.37 1.38 1.39 1.40 1.41 1.42
# NVFlare brings a web server and a database: its tests run from environments of their own.
FLARE  := .venv-nvflare
FLARES := 2.6 2.7 2.8 2.9
# vantage6 pins versions of its own, too.
ALGORITHM := .venv-vantage6

.PHONY: demo test suite test-spark test-flower-versions test-flower-app test-nvflare test-vantage6 lint ruff mypy imports docs bench clean
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
	$(BIN)/python -m pytest -n 4 --dist worksteal

$(SPARK)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[spark]" "pytest>=8.3" "hypothesis>=6.120"
	touch $@

test-spark: $(SPARK)/.installed    ## the tests that need Spark and Java
	$(SPARK)/bin/python -m pytest tests/settings/test_spark.py

test-flower-versions: $(STAMP)    ## real deployments, and whether all we use is there, with every version of Flower supported
	for version in $(VERSIONS); do \
	    $(PYTHON) -m venv $(FLOWER)-$$version && \
	    $(FLOWER)-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e . "flwr==$$version.*" && \
	    SFUMATO_FLOWER=$(CURDIR)/$(FLOWER)-$$version $(BIN)/python -m pytest tests/federated/test_flower.py tests/federated/test_canary.py || exit 1; \
	done

test-flower-app: $(STAMP)    ## the app for networks that run Flower: a real SuperLink, SuperNodes and a site of ours, each version
	for version in $(PUBLIC); do \
	    $(PYTHON) -m venv $(FLOWER)-$$version && \
	    $(FLOWER)-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e . "flwr==$$version.*" && \
	    SFUMATO_STOCK=1 SFUMATO_FLOWER=$(CURDIR)/$(FLOWER)-$$version $(BIN)/python -m pytest tests/federated/test_flower_app.py || exit 1; \
	done

test-nvflare: $(STAMP)    ## the job for networks that run NVFlare: its simulator, and its real processes, each version
	for version in $(FLARES); do \
	    $(PYTHON) -m venv $(FLARE)-$$version && \
	    $(FLARE)-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e . "nvflare==$$version.*" && \
	    SFUMATO_NVFLARE=$(CURDIR)/$(FLARE)-$$version SFUMATO_NVFLARE_VERSION=$$version \
	        $(BIN)/python -m pytest tests/federated/test_nvflare.py || exit 1; \
	done

test-vantage6: $(STAMP)    ## the algorithm for networks that run vantage6, with the client that vantage6 has for tests
	$(PYTHON) -m venv $(ALGORITHM)
	$(ALGORITHM)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[vantage6]"
	SFUMATO_VANTAGE6=$(CURDIR)/$(ALGORITHM) $(BIN)/python -m pytest tests/federated/test_vantage6.py

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
	rm -rf $(VENV) $(FLOWER) $(FLOWER)-* $(FLARE)-* $(ALGORITHM) $(SPARK) build report.html .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
