# A thin front of Meson: what is built is in meson.build, how it is tested in tools/run-tests.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
MESON_FLAGS ?=

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all run test bench campaign install lint format docs clean setup setup-test setup-lint

all: setup
	@test -f $(BUILD)/build.ninja || \
		meson setup $(BUILD) --buildtype=release --prefix=$(PREFIX) $(MESON_FLAGS)
	@ninja -C $(BUILD)
	@ln -sfn src/app/pawl $(BUILD)/pawl

run: all
	@tools/demo

test: setup-test all
	@tools/run-tests

# Everything measured stands beside its floor, in one run.
bench: setup-test all
	@bench/run

# The crash suites again, for hours: 3 000 kills instead of 100.
campaign: setup-test all
	@tools/run-tests --campaign

install: all
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

lint: setup-lint all
	@tools/lint

format: setup-lint
	@clang-format -i $$(find src bench tests fuzz include examples -name '*.[ch]')

docs: all
	@tools/docs

clean:
	rm -rf build build-asan build-tsan

setup:
	@tools/setup build

setup-test:
	@tools/setup test

setup-lint:
	@tools/setup lint
