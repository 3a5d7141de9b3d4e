# The front of the house: everything a developer or a CI types. The build itself is CMakeLists.txt (Ninja), the
# tests' driver is tests/run.py. Needs git and make to begin with; `deps` brings the rest from Debian's packages.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SEEDS ?= 20000
MOVES ?= 50
MINUTES ?= 20
SECONDS ?= 60
CMAKE_ARGS ?=
# Debian's python3 is the one that python3-pytest belongs to, whatever stands first in PATH.
PYTHON ?= $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
CXX_FILES = find src tests bench -name '*.cc' -o -name '*.h'

.DEFAULT_GOAL := help
.PHONY: help run build test helm-test check asan coverage bench bench-sqs simulate mutants moves chaos fuzz deps clean

help:
	@echo "make run       build, then two sidecars with a stock application and things to try (DEMO=1: plays a failover)"
	@echo "make build     install what the build needs and build the program: build/leasehold"
	@echo "make test      build and run every test; the last line counts them"
	@echo "make helm-test the chart: lint, render, the program's own check, what pods would do (HELM=/path/to/helm: yours)"
	@echo "make check     layering and bans, format, clang-tidy, cppcheck, scripts; changes nothing (DEEP=1: a longer look)"
	@echo "make asan      every test, the chart's too, under AddressSanitizer and UndefinedBehaviorSanitizer (build-asan/)"
	@echo "make coverage  what the unit tests reach of lease, proto and the gates' core; fails below 90 % and 80 %"
	@echo "make bench     our gates beside HAProxy and nginx, and before SQS beside Envoy (QUICK=1: HTTP only, under two minutes)"
	@echo "make bench-sqs the SQS part of it: direct calls, our gate, Envoy's signing filter, HAProxy (QUICK=1: a minute and a half)"
	@echo "make simulate  the lease protocol's simulator (SEEDS=n, default $(SEEDS); FIRST=s: the first seed)"
	@echo "make mutants   deliberate faults of the source, each caught by the simulator: which checker, after how many seeds"
	@echo "make moves     planned moves, rolling replacement, restarts under 1000 requests/s (MOVES=50 STORE=redis|file)"
	@echo "make chaos     real processes under kills, stops, partitions, store faults; then a checker (MINUTES=20 STORE=redis|file|both SEED=)"
	@echo "make fuzz      libFuzzer on what strangers can send (TARGET=http1_request, default all in turn; SECONDS=n each, default $(SECONDS))"
	@echo "make deps      install everything that all of these need (Debian packages; sudo when not root)"
	@echo "make clean     remove what was built"

deps:
	@.ci/deps build test aws helm check coverage bench fuzz

# One build folder for the program and the tests: the rooms are compiled once, optimised, for both.
build:
	@.ci/deps build
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=OFF $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS) --target leasehold
	@echo "built build/leasehold"

# Emulators and clients of AWS' services are fetched, some 60 MB, into build/tools/aws.
test:
	@.ci/deps build test aws
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=ON $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS)
	@$(PYTHON) tests/run.py --build build --jobs $(JOBS)

# Apart from `test`: helm and Kubernetes' schemas are fetched, some 60 MB, into build/tools.
helm-test: build
	@.ci/deps helm
	@$(PYTHON) tests/run.py --build build --jobs $(JOBS) helm

# Fewer seeds of the simulator: they are many times slower so, and differ in what they meet, not in what they execute.
asan:
	@.ci/deps build test aws helm
	@cmake -S . -B build-asan -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
	  -DLEASEHOLD_SANITIZE=ON -DLEASEHOLD_TESTS=ON -DLEASEHOLD_SEEDS=500 $(CMAKE_ARGS)
	@cmake --build build-asan --parallel $(JOBS)
	@$(PYTHON) tests/run.py --build build-asan --jobs $(JOBS) --sanitized

# Of what was compiled without optimisation, so that each line is there to be counted.
coverage:
	@.ci/deps build test coverage
	@cmake -S . -B build-coverage -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Debug -DLEASEHOLD_TESTS=ON \
	  -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1 --coverage -fprofile-update=atomic" $(CMAKE_ARGS)
	@$(PYTHON) tests/cxx_coverage.py --build build-coverage --jobs $(JOBS)

# `check` compiles nothing: clang-tidy reads the flags of the Release build.
check:
	@.ci/deps build check
	@cmake -S . -B build-check -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=OFF
	@echo "check: planted faults are found"
	@$(PYTHON) -m pytest -q -p no:cacheprovider tests/tidy/planted.py
	@echo "check: layering, bans, lengths"
	@$(PYTHON) tests/tidy/layering.py
	@echo "check: format"
	@$(CXX_FILES) | xargs clang-format --dry-run -Werror
	@echo "check: Python and shell"
	@$(PYTHON) tests/tidy/scripts.py
	@echo "check: cppcheck"
	@$(PYTHON) tests/tidy/cppcheck.py --build build-check --jobs $(JOBS)
	@echo "check: clang-tidy (some minutes)"
	@$(PYTHON) tests/tidy/clang_tidy.py --build build-check --jobs $(JOBS) $(if $(DEEP),--deep)
	@echo "check: all well"

simulate:
	@.ci/deps build test
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=ON $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS) --target simulate
	@build/tests/simulate --seeds $(SEEDS) $(if $(FIRST),--first-seed $(FIRST))

mutants:
	@.ci/deps build test
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=ON $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS) --target simulate
	@$(PYTHON) tests/mutations/mutants.py --build build --jobs $(JOBS)

# Two stores, about a minute and a half each.
moves:
	@.ci/deps build test
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=ON $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS) --target leasehold moves_app moves_load
	@LEASEHOLD_BIN=build/leasehold $(PYTHON) tests/moves/moves.py --moves $(MOVES) --store "$(STORE)"

# Apart from the other builds: another compiler, and every room instrumented. One core; a night: SECONDS=3600.
fuzz:
	@.ci/deps build fuzz
	@cmake -S . -B build-fuzz -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O2 -g1" \
	  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DLEASEHOLD_FUZZ=ON $(CMAKE_ARGS)
	@cmake --build build-fuzz --parallel $(JOBS) --target $(if $(TARGET),$(addprefix fuzz_,$(TARGET)),fuzz_all)
	@$(PYTHON) tests/fuzz/fuzz.py --build build-fuzz --seconds $(SECONDS) $(TARGET)

# Each store for that long, redis by default. As root, or where user namespaces are allowed, in network namespaces.
chaos:
	@.ci/deps build test
	@cmake -S . -B build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLEASEHOLD_TESTS=ON $(CMAKE_ARGS)
	@cmake --build build --parallel $(JOBS) --target leasehold moves_app moves_load
	@LEASEHOLD_BIN=build/leasehold $(PYTHON) tests/chaos/chaos.py --minutes $(MINUTES) --store "$(STORE)" --seed "$(SEED)"

# Scripted where nobody could press Ctrl-C.
run: build
	@.ci/deps test
	@if [ "$(DEMO)" = 1 ] || [ ! -t 0 ] || [ ! -t 1 ]; then scripted=--scripted; fi; \
	exec $(PYTHON) tests/demo/demo.py --bin build/leasehold $$scripted

bench: build
	@.ci/deps bench
	@cmake --build build --parallel $(JOBS) --target sqs_upstream
	@QUICK=$(QUICK) bench/run

bench-sqs: build
	@.ci/deps bench
	@cmake --build build --parallel $(JOBS) --target sqs_upstream
	@QUICK=$(QUICK) bench/run --sqs

clean:
	@rm -rf build build-asan build-check build-coverage build-fuzz
