# SPDX-License-Identifier: Apache-2.0
# Short names for the CMake commands that are used daily; `make help` lists them.

VERSION = $(shell sed -n 's/^\#define SHMVIEW_VERSION_[A-Z]* *//p' include/shmview/shmview.h | paste -sd .)
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# The interpreters for each of which `make wheel` makes a wheel.
PYTHONS ?= /usr/bin/python3
# The tables of the Python package, bench/NAME.py.
PYTHON_TABLES = python python_dropins python_torch python_streams
# The commands that print the other two tables.
C_TABLE = SHMVIEW_DAEMON=$(CURDIR)/build/release/daemon/shmviewd build/release/bench/bench $(BENCH_ARGS)
RUBY_TABLE = RUBYLIB=$(CURDIR)/build/ruby SHMVIEW_DAEMON=$(CURDIR)/build/release/daemon/shmviewd ruby bench/ruby.rb $(BENCH_ARGS)
# How many tests run at a time. More than there are processors, because most tests mainly wait.
TEST_JOBS ?= $(shell expr $(JOBS) '*' 2)
# The presets that have tests, and those of them that `make check-all` runs.
TESTED = dev clang asan tsan
CHECKS = dev asan tsan
SOURCES = git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp'

# Thread sanitizers from before 2024 crash if the kernel randomises addresses by more than 28 bits,
# so setarch switches that off. If it has no permission to do so, the tests run without it.
NO_ASLR = $(shell setarch -R true 2>/dev/null && echo setarch -R)

# `make check` builds with ninja if it is there, because that takes a fifth less time.
NINJA = $(shell command -v ninja)
QUICKLY = $(if $(NINJA),-G Ninja)
QUIETLY = $(if $(NINJA),--quiet,--no-print-directory -s)

.NOTPARALLEL:
.PHONY: all demo check check-all install deb bench bench-check bench-mpi bench-python bench-ruby bench-ctl bench-web bench-history wheel sdist release reproducible rpm pkg image matrix musl arm64 coverage analyze fuzz docs format clean help \
    deps deps-bench deps-check deps-check-all deps-coverage deps-deb deps-demo deps-docs deps-mpi deps-release deps-wheel \
    build-release $(TESTED:%=build-%) $(TESTED:%=check-%)

all: build-release
	@ln -sfn release/python build/python
	@ln -sfn release/ruby build/ruby

help:
	@echo 'make          build the library, the daemon and the examples into build/release,'
	@echo '              and the packages: PYTHONPATH=build/python /usr/bin/python3,'
	@echo '              RUBYLIB=build/ruby ruby'
	@echo 'make demo     the same, and run every example'
	@echo 'make check    build and test in a few minutes: all but the slowest tests, and with address'
	@echo '              and undefined sanitizers those that need little besides the sources'
	@echo 'make check-all  every test: plain, address and undefined sanitizers, thread sanitizer'
	@echo 'make check-X  one of these: $(TESTED); TEST_ARGS go to ctest'
	@echo 'make bench    measure; BENCH_ARGS go to the program'
	@echo 'make bench-check   the tables of C, Python and Ruby; fails if a target is missed'
	@echo 'make bench-mpi     libshmview-mpi beside plain MPI, on two nodes made of namespaces; as root'
	@echo 'make bench-python  the Python package beside the standard library and numpy'
	@echo 'make bench-ruby    the Ruby package beside the classes of Ruby itself'
	@echo 'make bench-ctl     shmviewctl beside programs that do the like with files'
	@echo 'make bench-web     the page of shmviewctl web with 100,000 segments, in Chromium'
	@echo 'make bench-history  runs the tables of C, Python and Ruby, and keeps them in bench/history'
	@echo 'make install  into PREFIX ($(PREFIX)), below DESTDIR'
	@echo 'make deb      the Debian source package and its binary packages, in build/deb'
	@echo 'make rpm, make pkg, make image   packages of Fedora and of Arch, and a container image: packaging/'
	@echo 'make coverage   the lines and branches that the tests reach, as a table'
	@echo 'make analyze    gcc -fanalyzer and clang-tidy'
	@echo 'make docs     the documentation as a site, in build/docs/html; its pages can be read without a server'
	@echo 'make fuzz HOURS=N  fuzzes for N hours of processor time'
	@echo 'make matrix   make check in new roots of Debian 12, 13 and sid, also with clang and for arm64;'
	@echo '              as root; MATRIX="trixie" chooses'
	@echo 'make musl     library and daemon as static programs with musl, and their C tests'
	@echo 'make arm64    library and daemon for arm64, and their C tests under qemu'
	@echo 'make wheel    self-contained wheels for PYTHONS ($(PYTHONS)), in build/wheel'
	@echo 'make sdist    the source archive for pip, in build/wheel'
	@echo 'make release  all files of a release of the last commit, wheels for PYTHONS, in build/dist, signed by MINISIGN_KEY'
	@echo 'make reproducible  builds them twice under other circumstances, and compares them'
	@echo 'make format   reformat the sources'
	@echo 'make clean    remove build/'

build-release $(TESTED:%=build-%): build-%:
	@echo "== $*: build"
	@cmake --preset $* $(CMAKE_ARGS) > /dev/null
	@cmake --build --preset $* -j $(JOBS) -- --no-print-directory -s

$(TESTED:%=check-%): check-%: build-%
	@echo "== $*: test"
	@$(if $(filter tsan,$*),$(NO_ASLR)) ctest --preset $* -j $(TEST_JOBS) $(TEST_ARGS)

check: deps-check
	@echo '== quick: build and test, all but the slowest'
	@cmake --preset quick $(QUICKLY) $(CMAKE_ARGS) > /dev/null
	@cmake --build --preset quick -j $(JOBS) -- $(QUIETLY)
	@ctest --preset quick -j $(TEST_JOBS)
	@echo '== quick-asan: build and test, daemon and library from within'
	@cmake --preset quick-asan $(QUICKLY) $(CMAKE_ARGS) > /dev/null
	@cmake --build --preset quick-asan -j $(JOBS) -- $(QUIETLY)
	@ctest --preset quick-asan -j $(TEST_JOBS)
	@echo '== checked; what is slow is left to make check-all'

check-all: deps-check-all $(CHECKS:%=check-%)
	@echo '== all checks passed'

demo: deps-demo build-release
	@tools/demo.sh

bench: deps-bench build-release
	@$(C_TABLE)

# The prefix is set at build time, because the library contains the path of its daemon.
install: override CMAKE_ARGS += -DCMAKE_INSTALL_PREFIX=$(PREFIX)
install: build-release
	DESTDIR='$(DESTDIR)' cmake --install build/release

deb: deps-deb
	@tools/deb.sh build/deb
	@ls build/deb/*.deb

analyze:
	@tools/analyze.sh

docs: deps-docs all
	@site/build.sh build/docs

fuzz:
	@tools/deps.sh ci
	@tools/fuzz.sh $(HOURS)

rpm pkg:
	@DEPENDENCIES=$(DEPENDENCIES) packaging/build.sh $@

image:
	podman build --format docker $(if $(BASE),--build-arg BASE=$(BASE)) -f packaging/container/Containerfile -t localhost/shmview .

coverage: deps-coverage
	@tools/coverage.sh

matrix:
	@tools/matrix.sh $(MATRIX)

musl arm64:
	@tools/$@.sh

wheel sdist: deps-wheel
	@mkdir -p build/wheel
	@cd bindings/python && for python in $(if $(filter sdist,$@),/usr/bin/python3,$(PYTHONS)); do \
	    $$python -B -c 'import backend; print("build/wheel/" + \
	        backend.build_$@("../../build/wheel", {"bundle": "yes"}))' || exit; \
	done

release: deps-release
	@PYTHONS='$(PYTHONS)' tools/release.sh build/dist

reproducible: deps-release
	@tools/reproducible.sh

bench-python: deps all
	@PYTHONPATH=$(CURDIR)/build/python SHMVIEW_DAEMON=$(CURDIR)/build/release/daemon/shmviewd \
	    sh -c 'failed=0; for table in $(PYTHON_TABLES); do \
	        /usr/bin/python3 bench/$$table.py $(BENCH_ARGS) || failed=1; done; exit $$failed'

bench-mpi: deps-mpi build-release
	@mpi/bench/bench.sh build/release

bench-ruby: deps all
	@$(RUBY_TABLE)

# Each table is printed, also after one that missed a target.
bench-check: deps all
	@failed=0; for table in bench bench-python bench-ruby; do \
	    $(MAKE) -s $$table BENCH_ARGS='$(BENCH_ARGS) --check' || failed=1; \
	done; exit $$failed

bench-ctl: deps all
	@PYTHONPATH=$(CURDIR)/build/python /usr/bin/python3 bench/ctl.py --build build/release $(BENCH_ARGS)

bench-web: BUILT = $(CURDIR)/build/release
bench-web: deps all
	@SHMVIEW_CONFIG=/dev/null SHMVIEW_SOURCE_DIR=$(CURDIR) SHMVIEW_BUILD_DIR=$(BUILT) PYTHONPATH=$(CURDIR)/build/python \
	    SHMVIEWCTL=$(BUILT)/cli/shmviewctl SHMVIEWD=$(BUILT)/daemon/shmviewd SHMVIEW_WEB=$(BUILT)/web/shmview-web \
	    bash tests/web/browser.sh bench/web.mjs

# For a release: run it on an idle machine.
bench-history: override BENCH_ARGS += --json
bench-history: deps-bench deps-docs all
	@mkdir -p build/history
	@$(C_TABLE) > build/history/c.json
	@for table in $(PYTHON_TABLES); do \
	    PYTHONPATH=$(CURDIR)/build/python SHMVIEW_DAEMON=$(CURDIR)/build/release/daemon/shmviewd \
	        /usr/bin/python3 bench/$$table.py $(BENCH_ARGS) > build/history/$$table.json || exit; \
	done
	@$(RUBY_TABLE) > build/history/ruby.json
	@bench/history.py record $(VERSION) build/history/*.json
	@bench/history.py plot

deps:
	@tools/deps.sh build

deps-bench deps-check deps-check-all deps-coverage deps-deb deps-demo deps-docs deps-mpi deps-release deps-wheel: deps-%:
	@tools/deps.sh $*

format:
	$(SOURCES) | xargs -r clang-format -i

clean:
	rm -rf build
