# Catchment: `make demo` and `make test` are all that a new user needs; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
TARGET ?= embedded
LANES ?= 64
LOSS ?= 0
# Random inputs differ from one state of the sources (pages aside) to the next and repeat for the same; SEED=n draws others.
SEED := $(or $(SEED),$(shell sources=$$(git ls-files -s -- . ':!*.md' 2>/dev/null | git hash-object --stdin 2>/dev/null) || true; \
	if [ -n "$$sources" ]; then echo $$((16#$${sources:0:8})); else od -An -N4 -tu4 /dev/urandom | tr -d ' '; fi))

VENV := .venv
BIN := $(VENV)/bin
NATIVE := build/native
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Mininet and raw sockets need root.
ROOT := $(if $(filter 0,$(shell id -u)),,sudo -E env PATH="$$PATH")

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# ---- set-up ------------------------------------------------------------------------------------
.PHONY: setup packages
setup: packages $(VENV)/.installed native ## install everything and build the native parts (idempotent)
	@$(MAKE) -s $(VENV)/docs/.installed || echo "setup: the packages of docs/requirements.txt cannot be had, so no site is built and its test is skipped"

packages:
	@tools/install-packages.sh

$(VENV)/.installed: requirements.txt hls/requirements.txt controlplane/shell/requirements.txt pyproject.toml | packages
	@$(PYTHON) -c 'import sys; sys.exit("setup: Python 3.11 or later is needed, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	@echo "setup: Python environment in $(VENV)/"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check -q
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --upgrade --target $(VENV)/hls -r hls/requirements.txt
	@test -x $(VENV)/shell/bin/python || $(PYTHON) -m venv --without-pip $(VENV)/shell
	@$(BIN)/python -m pip --python $(VENV)/shell/bin/python install -q --disable-pip-version-check -r controlplane/shell/requirements.txt
	@$(BIN)/python -m pip --python $(VENV)/shell/bin/python check -q
	@touch $@

.PHONY: native
native: $(VENV)/.installed ## build the switch and the endpoint
	@mkdir -p build
	@$(BIN)/cmake -S . -B $(NATIVE) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCATCHMENT_DEVELOPER=ON \
		-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >build/configure.log || { cat build/configure.log; exit 1; }
	@$(BIN)/cmake --build $(NATIVE)
	@$(BIN)/catchment-local-switch --compile >build/compile.log || { cat build/compile.log; exit 1; }

.PHONY: wheel
wheel: native ## build the package into build/wheel: a wheel that needs no compiler, and the sources
	@mkdir -p build/wheel
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	@PYTHONPATH=tools $(BIN)/python -c 'import package; package.build_sdist("build/wheel")'
	@ls build/wheel/*.whl build/wheel/*.tar.gz

# ---- use ---------------------------------------------------------------------------------------
.PHONY: demo p4 e2e
demo: setup ## train a language model through the switch (LOSS=0.01, ROOTS=2, TARGET=bmv2, NETWORK=shm, OUT_OF_CORE=1, RESTART=opt1@60, RESUME=1, STEPS=...)
	@$(ROOT) $(BIN)/catchment demo --target $(TARGET) --loss $(LOSS) $(if $(STEPS),--steps $(STEPS)) $(if $(ROOTS),--roots $(ROOTS)) $(if $(NETWORK),--network $(NETWORK)) $(if $(OUT_OF_CORE),--out-of-core) $(if $(RESTART),--restart $(RESTART)) $(if $(RESUME),--resume)

p4: setup ## compile the P4 programs (TARGET=bmv2 uses p4c)
	@$(BIN)/catchment p4 compile p4src/luwu.p4 --target $(TARGET) --define LANES=$(LANES)
	@$(BIN)/catchment p4 compile p4src/p4sgd.p4 --target $(TARGET) $(if $(filter-out file,$(origin LANES)),--define LANES=$(LANES))

e2e: setup ## the end-to-end tests in Mininet
	@$(ROOT) $(BIN)/python -m pytest tests/e2e

bench-%: setup ## measure one thing against its limit: bench-endpoint-convert, bench-switch, ...
	@$(ROOT) $(BIN)/python -m bench.$(subst -,_,$*)

# Three processes, since tests wait for others half of their time; each runs whole files, so that what a file's tests share
# is made once, in the order in which tests/conftest.py has put them.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder

# ---- checks ------------------------------------------------------------------------------------
.PHONY: check test test-full test-repeat lint format wire protocol-check
check: native lint ## lint, then every quick test that starts no process: minutes
	@echo "check: SEED=$(SEED)"
	@env CATCHMENT_SEED=$(SEED) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "check and not slow"

# CHANGED=1: what can notice the changes since the last commit; CHANGED=main: those since that commit.
test: setup lint ## lint, then every fast test and a sample of the long ones (CHANGED=1: what a change can touch)
	@echo "test: SEED=$(SEED)"
	@chosen=$(if $(CHANGED),"$$($(BIN)/python tests/selection/changed.py $(if $(filter 1,$(CHANGED)),HEAD,$(CHANGED)))"); \
		$(ROOT) env CATCHMENT_SEED=$(SEED) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow" $$chosen

test-full: setup lint ## every test, the long ones too
	@echo "test: SEED=$(SEED)"
	@$(ROOT) env CATCHMENT_SEED=$(SEED) $(BIN)/python -m pytest $(SIDE_BY_SIDE)

PYTHON_DIRS := catchment/*.py wire softswitch controlplane host sim rtl hls cli demo tests bench docs/tutorials/*.ipynb
CPP_FILES = $(shell git ls-files '*.cpp' '*.hpp' | grep -vE '^(wire|rtl)/generated/')

N ?= 20
test-repeat: setup ## run tests again and again under load (N=20 K=expression PATHS=tests/host), and say which were not always green
	@$(ROOT) $(BIN)/python tests/selection/repeat.py -n $(N) $(if $(K),-k "$(K)") $(PATHS)

$(VENV)/mutation/.installed: tests/mutation/requirements.txt
	@$(PYTHON) -m venv $(VENV)/mutation
	@$(VENV)/mutation/bin/python -m pip install -q --disable-pip-version-check -r tests/mutation/requirements.txt
	@touch $@

.PHONY: planted
planted: setup ## plant the listed bugs, and print the share that each tier of tests notices (COUNT=40 of them, K=part of a path)
	@$(ROOT) $(BIN)/python tests/planted/shares.py $(if $(COUNT),-n $(COUNT)) $(if $(K),-k "$(K)")

MUTANTS ?= 40
.PHONY: mutants
mutants: native $(VENV)/mutation/.installed ## mutate the pure modules, and say what their tests do not notice (MUTANTS=40 of each, K=part of a path)
	@$(BIN)/python tests/mutation/run.py -n $(MUTANTS) $(if $(K),-k "$(K)")

lint: $(VENV)/.installed ## formatting, lint and types; any finding is an error
	@$(BIN)/ruff format -q --check $(PYTHON_DIRS)
	@$(BIN)/ruff check -q $(PYTHON_DIRS)
	@$(BIN)/mypy
	@$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	@$(BIN)/python -m catchment.wire.generate --check
	@$(BIN)/python -m catchment.rtl.generate_registers --check
	@$(BIN)/python -m catchment.rtl.lint

format: $(VENV)/.installed ## format Python and C++ in place
	@$(BIN)/ruff format -q $(PYTHON_DIRS)
	@$(BIN)/ruff check -q --fix $(PYTHON_DIRS) || true
	@$(BIN)/clang-format -i $(CPP_FILES)

.PHONY: rtl-test hls-test formal synth
rtl-test: setup ## the hardware's tests: cocotb and Verilator, the slow ones too
	@env CATCHMENT_SEED=$(SEED) $(BIN)/python -m pytest tests/rtl

hls-test: setup ## the HLS models: C simulation, and that they equal the RTL
	@$(BIN)/python -m catchment.hls.build
	@env CATCHMENT_SEED=$(SEED) $(BIN)/python -m pytest tests/hls tests/rtl/test_rtl_equals_hls.py

formal: $(VENV)/.installed ## prove the hardware's invariants, and that each planted bug breaks its proof
	@$(BIN)/python -m catchment.rtl.formal

synth: $(VENV)/.installed ## area and logic depth of every hardware module
	@$(BIN)/python -m catchment.rtl.synth

protocol-check: $(VENV)/.installed ## model-check the protocol with Spin
	@$(BIN)/python -m catchment.sim.protocol

wire: $(VENV)/.installed ## regenerate wire/generated/ from wire/frame.toml, glm.toml, controller.proto and the P4Runtime package
	@$(BIN)/python -m catchment.wire.generate

$(VENV)/docs/.installed: docs/requirements.txt
	@$(PYTHON) -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip install -q --disable-pip-version-check -r docs/requirements.txt
	@touch $@

.PHONY: docs
docs: $(VENV)/docs/.installed ## build the pages as a site with search, in build/site
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict --quiet
	@echo "docs: build/site/index.html"

.PHONY: registers
registers: $(VENV)/.installed ## regenerate rtl/generated/ and docs/reference/registers.md from rtl/registers.toml
	@$(BIN)/python -m catchment.rtl.generate_registers

.PHONY: clean
clean: ## remove what was built; .venv stays
	@rm -rf build
