# Every target works on a fresh clone: it makes .venv itself and reinstalls when pyproject.toml changes.
# PYTHON chooses the interpreter that .venv is made with (3.11 or newer).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2

# Tests run in JOBS processes, so each keeps to one thread.
# Bytecode is kept, whatever the environment says: otherwise each of these processes, and each that a test starts, would
# compile irc and the tests anew; beside the sources, as that of installed packages is.
TESTING := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=
PYTEST  := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.PHONY: help demo test test-all test-slow test-numpy test-x86-64 test-differential bench bench-compare conformance zoo fuzz fuzz-models sweep lint docs dist format clean
.NOTPARALLEL:

help:
	@echo "make demo    compile and run a real model, with its report"
	@echo "make test    the quick tests, with native code where operators have it: every behaviour is covered"
	@echo "make test-all   the same, long random programs and exhaustive sweeps (make test-slow), and the tests that run"
	@echo "             models once more on NumPy alone and for a processor without AVX"
	@echo "make test-differential   the tests against PyTorch, if it is installed"
	@echo "make bench   the benchmarks of compiling and running, against the peers that are installed, and the ladder"
	@echo "make bench-compare   the same without the ladder, against the kept results; fails where irc is worse"
	@echo "make conformance   ONNX's test suite by irc, onnx.reference and ONNX Runtime; writes docs/reference/conformance.md"
	@echo "make zoo     downloads the packages of 35 real models, and checks and measures them"
	@echo "make fuzz    alias analysis against real memory, N random programs from SEED"
	@echo "make fuzz-models   N models that SEED mutates: refused, or computed as ONNX Runtime does, within limits"
	@echo "make sweep   each operator of PyTorch N times against it, on arguments that SEED generates from its schema"
	@echo "make lint    ruff, formatting, types"
	@echo "make docs    the documentation as a site, in build/site; a broken link is an error"
	@echo "make dist    wheel and sdist in dist/, each installed into an empty environment and tried there"
	@echo "make format  let ruff rewrite what it can"
	@echo "make clean   remove .venv, caches and what benchmarks wrote"

demo: $(VENV)/.test
	$(BIN)/python -m irc.demo

test: $(VENV)/.test
	$(TESTING) IRC_EXAMPLES=0.12 $(PYTEST) -m "not slow" --ignore=tests/differential

test-all: test test-slow test-numpy test-x86-64

# Exhaustive sweeps, which pyproject.toml calls slow, and eight times as many random programs and operands.
test-slow: $(VENV)/.test
	$(TESTING) $(PYTEST) -m "slow or hypothesis" --ignore=tests/differential

# What runs models, rather than single kernels or passes. The two targets below try a quarter of the random programs of
# `test-slow`, which are with native code, and the standard's cases only as they are optimised.
RUNNING := -k "not Unoptimised" tests/native tests/programs tests/runtime tests/test_onnx_backend.py tests/test_small_models.py

# As if llvmlite were not installed: tests/conftest.py sees to that.
test-numpy: $(VENV)/.test
	$(TESTING) IRC_EXAMPLES=0.25 IRC_BACKEND=numpy $(PYTEST) $(RUNNING)

test-x86-64: $(VENV)/.test
	$(TESTING) IRC_EXAMPLES=0.25 IRC_NATIVE_CPU=x86-64 $(PYTEST) $(RUNNING)

# With PyTorch, if it is installed: it is larger than all else together.
test-differential: $(VENV)/.test
	$(TESTING) $(PYTEST) tests/differential

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.runtime
	$(BIN)/python -m benchmarks.yolov3 --ladder
	$(BIN)/python -m benchmarks.yolov3 --ladder --subjects scripted --copies 2 --turns 1

bench-compare: $(VENV)/.bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.runtime
	$(BIN)/python -m benchmarks.compare

conformance: $(VENV)/.test
	$(BIN)/python -m benchmarks.conformance

zoo: $(VENV)/.bench
	$(BIN)/python -m benchmarks.zoo --fetch

# How many random programs, and which ones: make fuzz N=20000 SEED=1
N    ?= 2000
SEED ?= 0

fuzz: $(VENV)/.test
	$(TESTING) $(BIN)/python -m tests.fuzz $(N) $(SEED)

fuzz-models: $(VENV)/.test
	$(TESTING) $(BIN)/python -m tests.fuzz.models $(N) $(SEED)

sweep: $(VENV)/.test
	$(TESTING) $(BIN)/python -W ignore -m tests.differential.sweep $(N) $(SEED)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# The variable silences an announcement about what comes after MkDocs, which is not about this site.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# The smoke test runs in /, so that it imports what is installed and not the checkout.
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	for made in dist/*.whl dist/*.tar.gz; do \
	rm -rf build/empty && "$(PYTHON)" -m venv build/empty && \
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check "$$made" && \
	(cd / && "$(CURDIR)/build/empty/bin/python" "$(CURDIR)/tests/smoke.py") || exit 1; done
	rm -rf build/empty

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis benchmarks/out benchmarks/*/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# One stamp an extra: .venv/.test means that irc[test] is installed as pyproject.toml now says.
$(VENV)/.%: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[$*]'
	@touch $@

# Peers are installed one by one if they cannot be all together: one that has no wheel for this Python is left out.
# (Those two take long to build, and need a C++ compiler.)
COMPILED := --only-binary onnxoptimizer,onnxsim
$(VENV)/.bench: pyproject.toml | $(VENV)/.created
	$(PIP) $(COMPILED) --editable '.[bench]' || { $(PIP) --editable . && $(BIN)/python -c "import tomllib; \
	print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['bench'], sep='\n')" | \
	while read -r peer; do $(PIP) $(COMPILED) "$$peer" || echo "$$peer cannot be installed here: left out"; done; }
	@touch $@

$(VENV)/.created:
	@"$(PYTHON)" -c 'import sys; sys.exit("irc needs Python 3.11 or newer; set PYTHON=... (found " + sys.version.split()[0] + ")" if sys.version_info < (3, 11) else 0)'
	"$(PYTHON)" -m venv $(VENV)
	@touch $@
