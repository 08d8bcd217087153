# A front end to Meson and Ninja. Each target first installs the Debian packages it needs (see `packages`).
PREFIX ?= /usr/local

all: deps-build
	@tools/build build --prefix=$(PREFIX)

# Install all packages. Without root, print the command to run.
deps:
	@tools/deps build test demo bench

deps-%:
	-@tools/deps $(subst -, ,$*)

# About half an hour on two cores. The last line counts passed, failed and skipped tests.
test: deps-build-test
	@tests/run

# The same, but longer: an hour of fuzzing, the large robustness cases, longer recordings, demo/postgresql.
test-long: deps-build-test-demo
	@tests/run --long

bench: deps-build-bench
	@tools/build build
	@bench/run

demo: deps-build
	@tools/build build
	@demo/run

install: deps-build
	@tools/build build --prefix=$(PREFIX)
	@meson install -C build --no-rebuild

# Fuzz for HOURS of CPU time, shared by all fuzzers. Findings are in build-fuzz/crashes.
HOURS ?= 1
fuzz: deps-build-test
	@FUZZ_SECONDS=$$(( $(HOURS) * 3600 )) tests/run --only fuzz

# Print how many lines of its parser each fuzzer reaches with its seeds.
fuzz-coverage: deps-build-test
	@tools/fuzz-coverage

# Run the static analyzers for C, shell, JavaScript and Python, about three minutes of CPU time. Exits with 1 if they find anything.
lint: deps-build-lint
	@tools/build build
	@tools/lint

# A source release of the last commit; the same commit gives the same bytes.
VERSION = $(shell sed -n "/^project/s/.*version: '\([0-9.]*\)'.*/\1/p" meson.build)
tarball:
	@git archive --format=tar --prefix=wick-$(VERSION)/ HEAD | gzip -9n >wick-$(VERSION).tar.gz
	@echo wick-$(VERSION).tar.gz

# Debian packages of the last commit, in build-deb: wick, libwick1, libwick-dev.
deb: deps-build-package
	@tools/make-deb

clean:
	rm -rf build build-san build-fuzz build-deb build-tsan build-coverage

.PHONY: all deps test test-long bench demo install fuzz fuzz-coverage lint tarball deb clean
