# The front door. Each target runs presets of CMakePresets.json or a script of tools/, which document the details.
#
#   make demo             deduplicate and screen a real list: the package index of this Debian, or FILE=...
#   make build            the command, at build/release/bloomery
#   make check            the short loop: build and run the unit and model tests; a minute or two after a small change
#   make test             make lint, then all tests with both compilers, AddressSanitizer and fixed fuzz inputs
#   make test-long        the same with longer forms of the tests, ThreadSanitizer, AArch64 in an emulator, Debian 13,
#                         make fuzz
#   make test-statistics  expected, exact and measured false-positive rates, the longer form alone: 15 minutes
#   make bench            measure, in about 20 minutes; results in build/bench/
#   make bench-quick      the library alone, in two minutes
#   make bench-all        everything: 100 million lines, a billion keys; two hours, 9 GB of disk, 16 GB of memory
#   make bench-redis      filters on a Redis server: processor time, memory, growth; in a few minutes
#   make bench-publish    copy the results into docs/performance.md
#   make fuzz             explore for FUZZ_SECONDS=600, starting from the corpus of earlier runs
#   make format           clang-format the sources
#   make lint             include layers, formatting, wording, and clang-tidy on the files that differ from main
#   make lint-all         the same with clang-tidy on all files: 20 minutes on two processors
#   make install          cmake --install, to PREFIX=/usr/local
#   make clean            remove build/

FILE ?=
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
# Many tests wait, for servers and for the browser.
export CTEST_PARALLEL_LEVEL = $(shell expr 2 '*' $(JOBS))

.PHONY: build demo check test test-long test-statistics bench bench-quick bench-all bench-redis bench-build bench-publish fuzz format lint lint-all install clean install-dependencies
.NOTPARALLEL:
.DEFAULT_GOAL := build

build:
	tools/install-dependencies build
	cmake --workflow --preset release

demo: build
	tools/demo $(if $(FILE),"$(FILE)")

check:
	cmake --preset dev
	cmake --build --preset dev --target bloomery_tests
	ctest --preset dev -L '^(unit|model)$$'

# Both compilers: asan is clang's, dev g++'s. The whole suite of dev comes last: it is the summary to read.
test: install-dependencies lint
	cmake --workflow --preset asan
	cmake --workflow --preset dev

test-long: export BLOOMERY_LONG = 1
test-long: build test fuzz
	tools/install-dependencies long
	tools/test-aarch64
	tools/test-debian13
	cmake --workflow --preset clang
	cmake --build --preset asan-long && ctest --preset asan-long
	cmake --workflow --preset tsan
	cmake --build --preset tsan-long && ctest --preset tsan-long

test-statistics: export BLOOMERY_LONG = 1
test-statistics: install-dependencies
	cmake --preset dev
	cmake --build --preset dev --target three_rates
	ctest --preset dev -R ^StatisticOfThreeRates --verbose

bench-build:
	tools/install-dependencies build bench
	cmake --workflow --preset bench

bench: bench-build
	tools/bench

bench-quick: bench-build
	tools/bench --plan quick library

bench-all: bench-build
	tools/bench --plan all --lines 100M

bench-redis: bench-build
	build/bench/bench/time_redis
	build/bench/bench/time_redis 10000000 3

bench-publish:
	tools/bench publish

fuzz:
	tools/install-dependencies build test
	cmake --preset fuzz -D BLOOMERY_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build --preset fuzz
	ctest --preset fuzz --verbose

format:
	tools/install-dependencies format
	tools/sources | xargs clang-format -i

# Takes seconds if no C++ file differs from main.
lint:
	tools/check-layers
	tools/check-format
	tools/check-words
	tools/check-tidy

lint-all: lint
	tools/check-tidy --all

install: build
	cmake --install build/release --prefix "$(PREFIX)"

install-dependencies:
	tools/install-dependencies build test

clean:
	cmake -E rm -rf build
