# The way in. CMake does the building; this file knows the few words that people type.
# Only git, make and a shell are assumed; `make help` lists the targets.

BUILD ?= build
SCENE ?= double_dam_2d
SANITIZE ?= build-sanitize
WEB ?= build-web
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 600
CMAKE_FLAGS ?=

# A line for each compiled file is for eyes at a terminal; elsewhere only warnings and errors are worth reading.
ifndef MAKE_TERMOUT
NINJA_FLAGS := --quiet
CMAKE_QUIET := > $(BUILD)/configure.log || { cat $(BUILD)/configure.log; exit 1; }
endif

.DEFAULT_GOAL := all
.PHONY: all setup build build-all build-sanitize studio demo test test-long web sanitize fuzz bench install uninstall format clean help

all: ## build the library and the command into build/ (sets up what the build needs)
	@tools/setup.sh build
	@$(MAKE) --no-print-directory build
	@echo "built $(BUILD)/selkie"

setup: ## install everything that building, testing and the demo need
	@tools/setup.sh all

$(BUILD)/build.ninja:
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS) $(CMAKE_QUIET)

# What a user wants; tests and benches are built where they are asked for.
build: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target selkie selkie_shared selkie_static -- $(NINJA_FLAGS)

build-all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) -- $(NINJA_FLAGS)

studio: ## open a scene in the browser and run it: make studio SCENE=double_dam_2d
	@tools/setup.sh build
	@$(MAKE) --no-print-directory build
	@$(BUILD)/selkie studio $(SCENE) --run

demo: ## simulate and film a 3D dam break and a 2D double dam break into out/demo/
	@tools/setup.sh build demo
	@$(MAKE) --no-print-directory build
	@tools/demo.sh $(BUILD) out/demo

test: ## run all tests, then the fast ones and short fuzzing under the sanitizers
	@tools/setup.sh build test fuzz
	@# Tests that were off in an earlier configure (cmocka was missing) come in now.
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) $(CMAKE_QUIET)
	@$(MAKE) --no-print-directory build-all build-sanitize
	@tests/run.sh $(BUILD) $(SANITIZE) $(JOBS)

test-long: ## run every case of the list of checks for every method (`make test` runs its quick half)
	@tools/setup.sh build test
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) $(CMAKE_QUIET)
	@cmake --build $(BUILD) -j $(JOBS) --target selkie_checks physics_coiling physics_elastoplastic physics_splashes selkie -- $(NINJA_FLAGS)
	@OMP_WAIT_POLICY=passive $(BUILD)/tests/selkie_checks --long --jobs $(JOBS)
	@OMP_WAIT_POLICY=passive $(BUILD)/tests/physics_coiling long
	@OMP_WAIT_POLICY=passive $(BUILD)/tests/physics_elastoplastic long
	@OMP_WAIT_POLICY=passive $(BUILD)/tests/physics_splashes long
	@if $(BUILD)/selkie doctor | grep -q '^websockets *there'; then python3 tests/cli/studio_soak.py $(BUILD)/selkie 600; fi
	@bash tests/cli/_studio_firefox.sh $(BUILD) || [ $$? -eq 77 ]
	@case $$(uname -m) in aarch64|arm64) sh tests/check_simd.sh $(BUILD) neon $$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' $(BUILD)/CMakeCache.txt);; esac

web: ## the studio without a server: reduced fluids and small 2D liquids as WebAssembly, a static folder in build-web/site
	@tools/setup.sh web
	@web/wasm/sources.sh $(WEB)/source
	@NODE_PATH=/usr/share/nodejs emcmake cmake -S web/wasm -B $(WEB) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	    -DSELKIE_WEB_SOURCES=$(abspath $(WEB))/source > $(WEB)/configure.log 2>&1 || { cat $(WEB)/configure.log; exit 1; }
	@NODE_PATH=/usr/share/nodejs cmake --build $(WEB) -j $(JOBS) -- $(NINJA_FLAGS)
	@echo "left $(WEB)/site; any web server shows it, with threads: python3 web/wasm/serve.py $(WEB)/site"

build-sanitize:
	@tests/configure_sanitize.sh $(SANITIZE)
	@cmake --build $(SANITIZE) -j $(JOBS) -- $(NINJA_FLAGS)

sanitize: ## run the fast tests under AddressSanitizer and UBSan only
	@tools/setup.sh build test fuzz
	@$(MAKE) --no-print-directory build-sanitize
	@tests/run.sh - $(SANITIZE) $(JOBS)

fuzz: ## fuzz every reader for a long time: make fuzz FUZZ_SECONDS=600
	@tools/setup.sh build test fuzz
	@$(MAKE) --no-print-directory build-sanitize
	@tests/fuzz/run.sh $(SANITIZE) $(FUZZ_SECONDS) out/fuzz

bench: ## measure speed and memory (build/bench_*)
	@tools/setup.sh build bench
	@$(MAKE) --no-print-directory build-all
	@for program in step cuda film cfl backends poisson bounded unilateral stress bodies mpm splash reduced sph small_dense; do \
	    if [ -x $(BUILD)/bench_$$program ]; then $(BUILD)/bench_$$program || exit 1; fi; \
	done

install: ## install under PREFIX=/usr/local (DESTDIR is honoured)
	@tools/setup.sh build
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS) $(CMAKE_QUIET)
	@$(MAKE) --no-print-directory build
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) > $(BUILD)/install.log || { cat $(BUILD)/install.log; exit 1; }
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig || true; fi
	@echo "installed under $(DESTDIR)$(PREFIX); the files are listed in $(BUILD)/install_manifest.txt"

uninstall: ## remove what the last `make install` put in place
	@test -f $(BUILD)/install_manifest.txt || { echo "nothing was installed from $(BUILD)"; exit 1; }
	@while read -r file; do rm -f "$(DESTDIR)$$file"; done < $(BUILD)/install_manifest.txt

format: ## lay out the C sources with clang-format
	@command -v clang-format >/dev/null || { echo "clang-format is missing: apt-get install clang-format"; exit 1; }
	@git ls-files '*.c' '*.h' '*.cu' | xargs clang-format -i

clean: ## remove the build folders (out/ stays)
	@rm -rf $(BUILD) $(SANITIZE)

help: ## this list
	@echo "Selkie: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
	    printf '  make %-10s %s\n' "$$name" "$$text"; done
