# Needs only Python 3.11 or newer, git and make. `make help` lists what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST_FLAGS ?= -n 2
WORKS := ppo-pong ppo-cartpole ppo-cartpole-async ppo-halfcheetah dqn-pong rainbow-pong sac-halfcheetah \
	td3-halfcheetah \
	prioritized-replay replay-memory sampler-scaling startup
WORK ?= $(WORKS)
BENCH_FLAGS ?=

# Stamps: set-up is repeated only when what it depends on has changed.
MADE := $(VENV)/.made
PLAIN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
PINS := pyproject.toml constraints.txt

# Runs a named step; a failure ends in one line that says which and how to repeat it.
step = @printf '== %s\n' '$(1)'; $(2) || { printf 'FAILED: %s; repeat it with: %s\n' '$(1)' '$(2)'; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo test check format test-slow bench docs clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(PLAIN) ## train PPO on CartPole, draw its learning curve and film the policy
	@$(BIN)/operant train ppo --env.id CartPole-v1 --video gif
	@printf 'to call operant like this, activate its environment first: . $(BIN)/activate\n'

test: check ## everything a change must pass: format, lint, types and all tests
	$(call step,tests,$(BIN)/pytest $(PYTEST_FLAGS))

check: $(DEV) ## format, lint and types, without running anything
	$(call step,format,$(BIN)/ruff format --check .)
	$(call step,lint,$(BIN)/ruff check .)
	$(call step,types,$(BIN)/mypy --strict operant tests benchmarks docs)

format: $(DEV) ## format the source and repair what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test-slow: $(DEV) $(DOCS) ## the tests that take minutes: learning, and killing runs
	$(call step,slow tests,$(BIN)/pytest -m slow)

bench: $(DEV) ## speed beside other libraries, into the docs; WORK=... chooses what is measured
	@failed=; for work in $(WORK); do \
	$(BIN)/python -m benchmarks.speed $$work $(BENCH_FLAGS) || failed="$$failed $$work"; done; \
	$(BIN)/python -m benchmarks.table; \
	if [ -n "$$failed" ]; then printf 'FAILED:%s\n' "$$failed"; exit 1; fi

docs: $(DOCS) ## build the documentation into site/
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/code_lines.py
	@$(BIN)/mkdocs build --quiet --strict
	@printf 'the documentation is in site/index.html\n'

clean: ## remove caches and built files; runs and .venv stay
	rm -rf site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find operant tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit("Operant needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another one: make PYTHON=python3.11" % v[:2] if v < (3, 11) else None)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(PLAIN): $(MADE) $(PINS)
	$(INSTALL) -e .
	@touch $@

$(DEV): $(MADE) $(PINS)
	$(INSTALL) -e '.[dev]'
	@touch $(PLAIN) $@

$(DOCS): $(MADE) $(PINS)
	$(INSTALL) -e '.[docs]'
	@touch $(PLAIN) $@
