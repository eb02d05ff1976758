# Everything starts here: `make run` on a fresh clone needs Python 3.11 or newer and a package registry, nothing else.
# The README gives the same steps for Windows.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
# To run the program, developer tools are not needed; where they are installed, they stay.
INSTALLED := $(if $(wildcard $(DEV)),$(DEV),$(STAMP))
UV     := $(BIN)/uv
LOCK   := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
          --no-emit-index-url --no-emit-find-links
# Two workers suit small machines; set WORKERS=auto for one a core.
WORKERS ?= 2
# `make test ALL=1`, as continuous integration does it, runs the slow tests too and measures coverage.
TESTS := $(if $(ALL),--cov --cov-report=,-m "not slow")

.PHONY: env run demo test test-lowest lint bench bundle deb screenshots docs lock clean

env: $(DEV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Loopwright needs Python 3.11 or newer; set PYTHON=python3.12 (or another) and try again." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(UV): | $(BIN)/python
	@command -v uv >/dev/null && ln -sf "$$(command -v uv)" $(UV) || $(BIN)/python -m pip install --quiet uv

# Bytecode is compiled here, once: imports would otherwise pay for it at every start on machines that write none. uv does
# that for what it installs; the program itself stays where it is, and is compiled there.
define install
$(UV) pip sync --quiet --python $(BIN)/python --require-hashes --no-build-isolation --compile-bytecode $(1)
$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
$(BIN)/python -m compileall -q engine app
endef

$(STAMP): requirements.lock pyproject.toml | $(UV)
	$(call install,requirements.lock)
	@touch $(STAMP)

$(DEV): requirements-dev.lock pyproject.toml | $(UV)
	$(call install,requirements-dev.lock)
	@touch $(STAMP) $(DEV)

# Exit code 2 is the program's way to say that no window can be shown; it has told why.
run: $(INSTALLED)
	@$(BIN)/loopwright || { [ $$? -eq 2 ] && echo "So here is the run without a window." && $(MAKE) --no-print-directory demo; }

demo: $(INSTALLED)
	$(BIN)/loopwright run templates/self-refine.loop.json

# Compiled test modules are kept also on machines that write none, or each worker would compile all of them again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)
ifdef ALL
	$(BIN)/coverage report --include='engine/*' --fail-under=95
	$(BIN)/coverage report --include='app/*' --fail-under=85
endif

# The tests with the lowest versions that pyproject.toml allows.
test-lowest: $(DEV)
	$(UV) venv --quiet --clear --python $(BIN)/python .venv-lowest
	$(UV) pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --all-extras \
	  --group run --group dev -r pyproject.toml
	$(UV) pip install --quiet --python .venv-lowest/bin/python --no-deps --no-build-isolation -e .
	.venv-lowest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright
	$(BIN)/lint-imports --no-cache

bench: $(DEV)
	$(BIN)/python -m benchmarks

# The program with its own Python, for machines without one: an archive in dist/, and a package for Debian with it.
BUNDLER := .venv-bundle/bin/python
bundle: $(DEV)
	$(UV) venv --quiet --clear --python $(BIN)/python .venv-bundle
	$(UV) pip install --quiet --python $(BUNDLER) --require-hashes --no-deps --no-build-isolation -r requirements.lock
	$(UV) pip install --quiet --python $(BUNDLER) --constraint requirements-dev.lock pyinstaller
	$(UV) pip install --quiet --python $(BUNDLER) --no-deps --no-build-isolation .
	$(BUNDLER) packaging/bundle.py $(or $(DIST),dist) $(if $(filter deb,$(MAKECMDGOALS)),--package)

deb: bundle

# Draws docs/images again, without a screen; look at each before you commit it.
screenshots: $(DEV)
	$(BIN)/python -m benchmarks.screenshots

docs: $(DEV)
	$(BIN)/python -m benchmarks.reference_pages

# The locks are made from pyproject.toml alone, for every platform and every Python from 3.11.
lock: $(UV)
	$(LOCK) --all-extras --group run pyproject.toml -o requirements.lock
	$(LOCK) --all-extras --group run --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage*
