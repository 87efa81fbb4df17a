# Two commands matter: `make demo` and `make test`. `make help` lists the rest.
#
# PYTHON=python3.12      the interpreter for .venv (default: the first of 3.11 or newer)
# PYTEST_ARGS="-k log"   what to add to pytest's command line

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench docs constraints clean
SHELL := /bin/sh
export PYTHON
demo_dir := $(CURDIR)/.demo

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## install, build the base, run the demo notebooks in the sandbox
	@scripts/setup.sh
	@. scripts/environment.sh && .venv/bin/dagger-kernel demo --directory "$(demo_dir)"

test: ## install and run the whole test suite
	@scripts/setup.sh test
	@. scripts/environment.sh && .venv/bin/python -m pytest $(PYTEST_ARGS)

lint: ## ruff and mypy
	@scripts/setup.sh test dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: ## let ruff format and fix
	@scripts/setup.sh test dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: ## measure plain ipykernel, the local engine and Dagger side by side
	@scripts/setup.sh test
	@. scripts/environment.sh && .venv/bin/python -m benchmarks $(BENCH_ARGS)

docs: ## write the settings' table in docs/settings.md anew
	@scripts/setup.sh
	.venv/bin/python scripts/settings_table.py

constraints: ## resolve constraints.txt anew
	@scripts/setup.sh
	@scripts/constraints.sh

clean: ## remove everything the other targets made
	rm -rf .venv .demo .test-data .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist benchmarks/results
	find . -name __pycache__ -type d -prune -not -path './.git/*' -exec rm -rf {} +
