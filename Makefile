# The front door. Each target is a few presets of CMakePresets.json or a file of tools/; what they do is said there.
#
#   make demo           deduplicate and screen a real list: of this Debian's package index, or FILE=...
#   make build          the command, at build/release/bloomery
#   make test           everything: all tests, both compilers, sanitizers, a minute of fuzzing
#   make test-long      the same with the tests' longer forms
#   make bench          measure; results in build/bench/
#   make fuzz           fuzz for FUZZ_SECONDS=600
#   make format lint    clang-format the sources; clang-tidy them
#   make install        cmake --install, to PREFIX=/usr/local
#   make clean          forget build/

FILE ?=
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export CTEST_PARALLEL_LEVEL = $(JOBS)

.PHONY: build demo test test-long bench fuzz format lint install clean install-dependencies
.NOTPARALLEL:
.DEFAULT_GOAL := build

build:
	tools/install-dependencies build
	cmake --workflow --preset release

demo: build
	tools/demo $(if $(FILE),"$(FILE)")

# The whole suite of dev comes last: it is the summary to read.
test: build install-dependencies
	cmake --workflow --preset clang
	cmake --workflow --preset asan
	cmake --workflow --preset tsan
	cmake --workflow --preset fuzz
	cmake --workflow --preset dev

test-long: export BLOOMERY_LONG = 1
test-long: test

bench:
	tools/install-dependencies build bench
	cmake --workflow --preset bench
	tools/bench

fuzz:
	tools/install-dependencies build test
	cmake --preset fuzz -D BLOOMERY_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build --preset fuzz
	ctest --preset fuzz --verbose

format:
	tools/install-dependencies format
	tools/sources | xargs clang-format -i

lint:
	tools/install-dependencies build test format
	tools/sources | xargs clang-format --dry-run -Werror
	cmake --preset clang
	tools/sources '*.cpp' | grep -v -E '^(bench|fuzz|tests/consumers)/' | xargs -P $(JOBS) -n 1 clang-tidy --quiet -p build/clang

install: build
	cmake --install build/release --prefix "$(PREFIX)"

install-dependencies:
	tools/install-dependencies build test

clean:
	cmake -E rm -rf build
