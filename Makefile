# One command each. Everything is made under .venv/ and build/; nothing outside the checkout is changed
# except the Debian packages that `make packages` installs when they are missing.

PYTHON   ?= python3
VENV     := .venv
BIN      := $(VENV)/bin
TORCH    := 2.13.0
PACKAGES := g++ clang-19 lld-19 clang-format-19 libclang-rt-19-dev llvm-19-dev libzstd-dev zlib1g-dev \
            libgtest-dev libgmock-dev ccache python3-venv python3-dev dataset-fashion-mnist qemu-user
BROWSER  := chromium
JOBS     ?= $(shell nproc)
BENCHMARKS := programs overheads ablation coexecution coexecution_later lazy_ablation distributed growth threads recurrent kernels state oracles

.PHONY: all packages environment build test test-instruction-sets smoke other-torch smoke-other-torch matrix bench bench-all bench-page evaluate $(BENCHMARKS:%=bench-%) api-page reasons-page pictures notebooks demo showcase data-parallel format lint check core-gcc arm64 sanitize sanitize-python sanitize-threads fuzz fuzz-programs frameworks test-frameworks bench-frameworks mutations wheels golden clean

all: build

# --- setting up -----------------------------------------------------------------------------------------
packages:
	@lacking() { for p; do dpkg-query -W -f='$${Status}\n' $$p 2>/dev/null | grep -q "ok installed" || echo $$p; done; }; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	install() { $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq "$$@"; }; \
	missing=$$(lacking $(PACKAGES)); \
	if [ -n "$$missing" ]; then echo "installing Debian packages:" $$missing; install $$missing || exit 1; fi; \
	browser=$$(lacking $(BROWSER)); \
	if [ -n "$$browser" ]; then \
	  echo "installing $$browser, by which tests look at pages"; \
	  install --no-install-recommends $$browser || echo "no $$browser here: these tests are skipped"; \
	fi

$(BIN)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q torch==$(TORCH) numpy rich pytest pytest-xdist hypothesis ipython ipykernel nbclient nbformat tensorboard coverage cloudpickle joblib scikit-build-core nanobind cmake ninja ruff mypy build wheel
	touch $@

environment: packages $(BIN)/ready

# --- building -------------------------------------------------------------------------------------------
# The extension is built in build/dev and linked into the package folder; .venv sees the checkout itself.
build/dev/build.ninja: | environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset dev -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python

build: environment build/dev/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/dev -j $(JOBS)
	$(BIN)/python tools/link_checkout.py build/dev $(VENV)

# --- checking -------------------------------------------------------------------------------------------
# Each of JOBS processes takes whole files of tests/python; conftest.py puts together what they find.
IN_PARALLEL := -n $(JOBS) --dist loadfile

# All that continuous integration asks for (.ci/run): what is quickest to fail comes first.
check: lint core-gcc test

test: build
	$(BIN)/ctest --test-dir build/dev --output-on-failure --timeout 300 --repeat after-timeout:2 -j $(JOBS)
	$(BIN)/python -m pytest $(IN_PARALLEL)
	$(BIN)/python tools/test_instruction_sets.py $(IN_PARALLEL)

# The operators' tests once more for each narrower instruction set: torch's libraries choose other code there, and we do.
test-instruction-sets: build
	$(BIN)/python tools/test_instruction_sets.py $(IN_PARALLEL)

# A sample of programs, eagerly and converted: half a minute.
smoke: build
	$(BIN)/python tools/smoke.py

# The same with another torch, and with torchjanus as users without a wheel install it. What needs no torch comes from
# the compiler's cache. pip may be told to take $(TORCH) only; not here.
OTHER_TORCH := 2.15.0
OTHER       := build/with-torch-$(OTHER_TORCH)
$(OTHER)/ready: pyproject.toml Makefile | packages
	$(PYTHON) -m venv --clear $(OTHER)
	PIP_CONSTRAINT=/dev/null $(OTHER)/bin/pip install -q --no-cache-dir torch==$(OTHER_TORCH) numpy rich scikit-build-core nanobind cmake ninja
	touch $@

other-torch: $(OTHER)/ready

CACHED := --config-settings=cmake.args=--preset=dev --config-settings=cmake.build-type=RelWithDebInfo --config-settings=cmake.define.TORCHJANUS_WARNINGS_AS_ERRORS=ON
smoke-other-torch: build other-torch
	PATH=$(CURDIR)/$(OTHER)/bin:$$PATH $(OTHER)/bin/pip install -q --no-build-isolation --no-deps --force-reinstall \
	  --config-settings=build-dir=build/for-torch-$(OTHER_TORCH) $(CACHED) .
	$(OTHER)/bin/python tools/smoke.py

# The wheels with other versions of Python and torch, in roots of Debian and Ubuntu; docs/versions.md and the README's
# table. Needs root and debootstrap.
matrix: environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python tools/matrix.py $(ARGS)

lint: environment
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	clang-format-19 --dry-run --Werror $$(git ls-files '*.h' '*.cpp')
	$(BIN)/python tools/check_includes.py
	$(BIN)/python tools/check_links.py

# The rooms without Python and torch by the other compiler, whose warnings are others; their tests have to link.
build/core-gcc/build.ninja: | environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset core-gcc

core-gcc: environment build/core-gcc/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/core-gcc -j $(JOBS)

# The same rooms for arm64, by clang and Debian's packages of that architecture, which are only unpacked (below
# build/arm64). qemu runs the tests, the kernels in them too; it does not survive a fork beside threads.
ARM64 := build/arm64/sysroot
$(ARM64)/ready: tools/arm64_sysroot.py | environment
	$(BIN)/python tools/arm64_sysroot.py $(ARM64)

build/core-arm64/build.ninja: | $(ARM64)/ready
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset core-arm64

arm64: environment build/core-arm64/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/core-arm64 -j $(JOBS)
	@set -e; for test in base graph ops passes jit kernels execute trace golden; do \
	  TORCHJANUS_LOG=verify qemu-aarch64 -L $(ARM64) build/core-arm64/tests/cpp/test_$$test --gtest_brief=1 \
	    --gtest_filter='-*Fork*:*.TheChild*'; \
	done

format: environment
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .
	clang-format-19 -i $$(git ls-files '*.h' '*.cpp')

build/sanitize/build.ninja: | environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset sanitize

sanitize: environment build/sanitize/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/sanitize -j $(JOBS)
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure -j $(JOBS)

# The rooms with Python: the executables that embed an interpreter, and the extension module in Python's tests. Leaks are
# not looked for, as CPython and torch keep much until the end; malloc in place of Python's own allocator, as that
# hides what is read after it was freed.
SANITIZED_TESTS ?= tests/python/language tests/python/objects tests/python/runtime/test_guards.py \
                   tests/python/runtime/test_profile.py tests/python/runtime/test_golden_graphs.py
build/sanitize-python/build.ninja: | environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset sanitize-python -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python

sanitize-python: environment build/sanitize-python/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/sanitize-python -j $(JOBS) \
	  -t _core _syntax_support _profile_support test_python test_syntax test_speculate test_frontend
	@set -e; for room in python syntax speculate frontend; do \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc build/sanitize-python/tests/cpp/test_$$room --gtest_brief=1; \
	done
	$(BIN)/python tools/sanitized_pytest.py build/sanitize-python $(IN_PARALLEL) --max-worker-restart=0 $(SANITIZED_TESTS)

# Threads: the pool, and everything that execution hands out to it.
build/sanitize-threads/build.ninja: | environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --preset sanitize-threads

sanitize-threads: environment build/sanitize-threads/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/sanitize-threads -j $(JOBS) -t test_base test_execute
	@set -e; for room in base execute; do \
	  TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0 build/sanitize-threads/tests/cpp/test_$$room --gtest_brief=1; \
	done

# What the fuzzers find to be new goes to build/sanitize; the texts of the repository are where they start.
FUZZ_SECONDS ?= 60
fuzz: environment build/sanitize/build.ninja
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cmake --build build/sanitize -j $(JOBS) -t fuzz_parser fuzz_signature fuzz_dim fuzz_passes fuzz_control fuzz_trace
	@set -e; for target in parser signature dim passes control trace; do \
	  mkdir -p build/sanitize/corpus/$$target; seeds=; \
	  for folder in tests/fuzz/corpus/$$target tests/ir/graph tests/ir/passes; do [ -d $$folder ] && seeds="$$seeds $$folder"; done; \
	  build/sanitize/tests/fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 \
	    -verbosity=0 -print_final_stats=1 -artifact_prefix=build/sanitize/ build/sanitize/corpus/$$target $$seeds; \
	done

# Random programs, eagerly and in another WAY: converted, or lazily. Prints the failing seeds, their programs made small, and what ran as graphs.
PROGRAMS   ?= 10000
FIRST_SEED ?= 1000
KIND       ?= mixed
WAY        ?= converted
fuzz-programs: build
	$(BIN)/python tests/python/harness/random_programs.py --kind $(KIND) --way $(WAY) --first $(FIRST_SEED) --programs $(PROGRAMS) --output build/programs

# Programs that are built on packages, eagerly and under `torchjanus run`. The packages are pinned, without what they
# ask for, so that torch stays as it is.
$(BIN)/frameworks: tests/frameworks/requirements.txt tests/frameworks/mend_torchvision.py | environment
	$(BIN)/pip install -q --no-deps -r $<
	$(BIN)/python tests/frameworks/mend_torchvision.py
	touch $@

frameworks: $(BIN)/frameworks

test-frameworks: build frameworks
	$(BIN)/python -m pytest -n $(JOBS) tests/frameworks

# Plants wrong changes of state, class by class, and shows which tests see them.
mutations: build
	$(BIN)/python tools/mutations.py $(ARGS)

# Rewrites the golden files: of the passes (tests/ir) and of the front end (tests/programs). Review what changed.
golden: build
	$(BIN)/python tools/golden.py --update
	$(BIN)/python tests/python/harness/golden_programs.py --update

# --- using ----------------------------------------------------------------------------------------------
# Results go to benchmarks/results, of which `make bench-page` makes docs/benchmarks.md and the README's table. With
# ARGS only what they name is measured, and goes to build/benchmarks: make bench ARGS="lenet gan --rounds 10 --no-compile"
KEPT := $(if $(ARGS),$(ARGS),--output benchmarks/results)

# The table of programs; then the page.
bench: bench-programs bench-page

bench-programs: build
	$(BIN)/python benchmarks/table.py $(KEPT)

# All of them, one after the other: hours.
bench-all: $(BENCHMARKS:%=bench-%) bench-page

# What comes on top of the graphs: entry, profiling, the first graph.
bench-overheads: build
	$(BIN)/python benchmarks/overheads.py $(KEPT)

# What unrolling, specialisation, threads, compilation and batching bring, each on top of those before.
bench-ablation: build
	$(BIN)/python benchmarks/ablation.py $(KEPT)

# The programs of Terra's evaluation, each way to run them in processes of its own.
bench-coexecution: build
	$(BIN)/python benchmarks/coexecution.py $(KEPT)

# The same, when all that is tried in a run's first hundreds of steps is decided.
bench-coexecution_later: build
	$(BIN)/python benchmarks/coexecution.py --name coexecution_later --steps 960 --turns 1 --modes torchjanus $(KEPT)

# What each part of lazy execution brings.
bench-lazy_ablation: build
	$(BIN)/python benchmarks/lazy_ablation.py $(KEPT)

# Two processes beside one, with and without overlap; steps on more ranks are simulated.
bench-distributed: build
	$(BIN)/python benchmarks/distributed.py $(KEPT)

# How generation, entry and steps grow with the program's size; a plot beside the results.
bench-growth: build
	$(BIN)/pip install -q matplotlib
	$(BIN)/python benchmarks/growth.py $(KEPT)

# Whether Python's numbers that change from call to call are what they are in eager, beside torch.compile.
bench-state: build
	$(BIN)/python benchmarks/state.py $(KEPT)

# Torch's recurrent layers in training steps.
bench-recurrent: build
	$(BIN)/python benchmarks/recurrent.py $(KEPT)

# One thread beside several.
bench-threads: build
	$(BIN)/python benchmarks/threads.py $(KEPT)

# Compiled kernels beside the bandwidth of a copy.
bench-kernels: build
	$(BIN)/python benchmarks/kernels.py $(KEPT)

# torch's databases of operators, modules and optimizers: how many samples agree, and how many ran as graphs.
bench-oracles: build
	$(BIN)/python benchmarks/oracles.py $(KEPT)

# Programs that are built on packages; docs/frameworks.md, unless ARGS name some of them.
bench-frameworks: build frameworks
	$(BIN)/python tools/frameworks.py $(or $(ARGS),--seconds 10 30 --again --jobs 2 --output benchmarks/results --page)

# The evaluations of JANUS's, Jittor's and Terra's papers, and docs/evaluation of them: hours. It goes on where it ended:
# make evaluate PARTS="janus-throughput jittor-gans" MINUTES=20 ARGS="--sst FOLDER"; ARGS=--quick only tries each part.
# JAX and gymnasium are put beside the environment; what can't be installed is not measured.
COMPARED := build/evaluation/packages
$(COMPARED): | environment
	-$(BIN)/pip install -q --no-deps --target $@ jax jaxlib ml_dtypes opt_einsum scipy gymnasium farama-notifications

evaluate: build $(COMPARED)
	PYTHONPATH=$(CURDIR)/$(COMPARED) $(BIN)/python benchmarks/evaluate.py $(PARTS) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)
	$(PYTHON) benchmarks/page.py

# docs/benchmarks.md and the README's table, of the results that are there.
bench-page:
	$(PYTHON) benchmarks/page.py

# docs/api.md, of the docstrings.
api-page: build
	$(BIN)/python tools/api_page.py

# docs/reasons.md, of what is written about each code.
reasons-page: build
	$(BIN)/python tools/reasons_page.py

# docs/pictures, by Debian's chromium, which `make packages` doesn't install; some of them: NAMES="live.svg demo.png".
pictures: build
	$(BIN)/python tools/pictures.py $(NAMES)

# examples/notebooks, of the scripts beside them.
notebooks: environment
	$(BIN)/python tools/notebooks.py

# LeNet eagerly and converted; a page with both curves, and the report, in build/demo.
demo: build
	$(BIN)/python examples/demo.py

# Five programs, eagerly, by torch.compile and converted, with live curves; a page of them in build/showcase.
showcase: build
	$(BIN)/python benchmarks/showcase.py $(ARGS)

# Two processes that train together, each with a report.
data-parallel: build
	GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 $(BIN)/torchrun --nproc-per-node=2 -m torchjanus run --explain examples/data_parallel.py

# dist/: for each Python a wheel with a library for each torch; LLVM, zstd and zlib are inside. Hours, but for what is
# in the compiler's cache: make wheels ARGS="--pythons 3.11 --torches 2.13.0"
wheels: environment
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python tools/wheels.py $(ARGS)

clean:
	rm -rf build dist
