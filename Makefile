# The common tasks. Each target runs presets of CMakePresets.json or a script of tools/, which document the details.
#
#   make demo             deduplicate and check a real list: the URLs of this Debian's package index, or FILE=...
#   make build            build the command, build/release/bloomery; with its page if the tools of make page are there
#   make check            build and run the unit and model tests; a minute or two after a small change
#   make test             make lint, all tests with g++, those of files and kernels with sanitizers, fuzz targets
#   make test-long        also longer forms of the tests, sanitizers for all, libc++, AArch64 in an emulator, Debian 13
#   make test-statistics  compare expected, exact and measured FPR with many lookups; a quarter of an hour
#   make bench            run the benchmarks, about 20 minutes; results in build/bench/
#   make bench-quick      benchmark the library only, two minutes
#   make bench-all        all benchmarks: 100 million lines, 1 billion keys; two hours, 9 GB of disk, 16 GB of memory
#   make bench-redis      benchmark filters on a Redis server: its processor time, memory and growth; a few minutes
#   make bench-publish    write the results to docs/performance.md
#   make audit            measure the filters of other libraries and judge whether they keep their target FPRs
#   make fuzz             fuzz for FUZZ_SECONDS=600 per target; keeps and reuses what earlier runs found
#   make format           format the sources with clang-format
#   make lint             check include layers, formatting and wording; clang-tidy on files that differ from main
#   make lint-all         the same with clang-tidy on all files; 20 minutes on two processors
#   make page             build the playground's page for any static host: build/site; URL=... is its future address
#   make dist             write an archive of the sources with the built page: build/bloomery-VERSION.tar.gz
#   make deb              build Debian packages: build/deb/*.deb
#   make wheel            build the Python package for /usr/bin/python3 as a wheel: build/wheel/*.whl
#   make install          cmake --install, to PREFIX=/usr/local
#   make clean            remove build/

FILE ?=
URL ?=
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc)

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
# More tests than processors: many tests wait for servers or the browser.
export CTEST_PARALLEL_LEVEL = $(shell expr 2 '*' $(JOBS))

.PHONY: build page dist deb demo check test test-long test-statistics bench bench-quick bench-all bench-redis bench-build bench-publish audit fuzz format lint lint-all wheel install clean install-dependencies
.NOTPARALLEL:
.DEFAULT_GOAL := build

build:
	tools/install-dependencies build
	cmake --preset release -D BLOOMERY_BUILD_PAGE=ON
	cmake --build --preset release

page:
	tools/install-dependencies build page
	tools/build-page build/page --site build/site $(if $(URL),--url "$(URL)")

dist:
	tools/install-dependencies build page
	URL="$(URL)" tools/make-dist

deb:
	tools/install-dependencies build deb
	tools/build-debian-packages

# The page takes longer to build than the rest, and the demo does not show it.
demo:
	tools/install-dependencies build
	cmake --preset release -D BLOOMERY_BUILD_PAGE=OFF
	cmake --build --preset release
	tools/demo $(if $(FILE),"$(FILE)")

check:
	cmake --preset dev
	cmake --build --preset dev --target bloomery_tests
	ctest --preset dev -L '^(unit|model)$$'

# asan uses clang and has the tests of files, formats and kernels; asan-long, in test-long, has the others too. dev uses
# g++, and runs last because its summary covers all tests.
test: install-dependencies lint
	cmake --workflow --preset asan
	cmake --workflow --preset dev

test-long: export BLOOMERY_LONG = 1
test-long: build test fuzz
	tools/install-dependencies long deb
	tools/build-debian-packages --test
	tools/test-package-managers
	tools/test-duckdb
	tools/test-aarch64
	if command -v clang++-19 >/dev/null; then cmake --workflow --preset libcxx; else echo "SKIP the tests with libc++: clang++-19 is missing"; fi
	tools/test-debian13
	cmake --workflow --preset clang
	cmake --workflow --preset asan-long
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

audit:
	tools/install-dependencies build audit
	cmake --preset release -D BLOOMERY_BUILD_PAGE=OFF
	cmake --build --preset release --target bloomery_cli
	tools/audit

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

wheel:
	tools/install-dependencies build wheel
	$(PYTHON) -m pip wheel --no-build-isolation --no-deps --wheel-dir build/wheel ./python

install: build
	cmake --install build/release --prefix "$(PREFIX)"

install-dependencies:
	tools/install-dependencies build test page

clean:
	cmake -E rm -rf build
