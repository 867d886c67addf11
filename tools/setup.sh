#!/bin/sh
# Installs what Selkie needs on Debian 12, by package name, and only what is missing.
#
#   tools/setup.sh GROUP...     groups: build demo test fuzz bench all
#
# Nothing is fetched when everything is there. Without root and without sudo it installs nothing and says what to ask for.
set -eu

# The compiler and the libraries; all but the first line are optional for the build and found at configure time.
build_packages="build-essential cmake ninja-build pkg-config zlib1g-dev
    libjson-c-dev libassimp-dev libembree-dev libpng-dev libcairo2-dev libode-dev"
demo_packages="ffmpeg"
test_packages="libcmocka-dev python3 ffmpeg clang-format"
# libomp is the OpenMP of clang, which builds the fuzzers and the sanitized library.
fuzz_packages="clang libclang-rt-14-dev libomp-dev"

say() { printf 'setup: %s\n' "$*"; }

wanted=""
[ $# -gt 0 ] || set -- build
for group in "$@"; do
    case $group in
    build | bench) wanted="$wanted $build_packages" ;;
    demo) wanted="$wanted $demo_packages" ;;
    test) wanted="$wanted $test_packages" ;;
    fuzz) wanted="$wanted $fuzz_packages" ;;
    all) wanted="$wanted $build_packages $demo_packages $test_packages $fuzz_packages" ;;
    *)
        say "unknown group '$group'; one of: build demo test fuzz bench all" >&2
        exit 2
        ;;
    esac
done

# Other systems have other names for these packages: leave them to CMake, which reports what it does not find.
if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    say "this is not a Debian system; going on with what is here (wanted:$(printf ' %s' $wanted))"
    exit 0
fi

missing=""
for package in $wanted; do
    case " $missing " in *" $package "*) continue ;; esac
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="${missing:+$missing }$package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    say "these packages are missing, and there is neither root nor sudo to install them. Ask for:" >&2
    say "    apt-get update && apt-get install --no-install-recommends $missing" >&2
    exit 1
fi

say "installing $missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# $as_root is empty or one word; $missing is a list of words.
if ! { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "that failed (above: the end of what apt-get said); nothing was built" >&2
    exit 1
fi
say "done"
