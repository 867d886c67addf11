#!/bin/sh
# The core must build without any optional library, and say what is missing instead of failing oddly.
# Not optimised: this is about what compiles and links. Usage: check_core_only.sh BUILD
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
build=$1/core-only
rm -rf "$build"
mkdir -p "$build"
cmake -S "$source" -B "$build" -G Ninja -DSELKIE_CORE_ONLY=ON -DSELKIE_TESTS=OFF -DCMAKE_BUILD_TYPE=None \
    -DSELKIE_SIMD=none -DSELKIE_WERROR=ON -DCMAKE_C_FLAGS=-O0 >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" -- --quiet

needed=$(ldd "$build/libselkie.so" | awk '/json-c|assimp|embree|libpng|libcairo|libode|libarpack|libwebsockets/ { print $1 }')
[ -z "$needed" ] || { echo "a core-only library must not need $needed"; exit 1; }

# A scene file needs json-c: one line that says so, exit code 2.
[ -x "$build/selkie" ] || exit 0
"$build/selkie" --version >/dev/null
"$build/selkie" doctor >"$build/doctor.txt"
for package in libjson-c-dev libassimp-dev libembree-dev libpng-dev libcairo2-dev libode-dev libarpack2-dev libwebsockets-dev; do
    grep -q "$package" "$build/doctor.txt" || { echo "selkie doctor does not name the missing $package:"; cat "$build/doctor.txt"; exit 1; }
done
scene=$(find "$source/scenes/examples" -name '*.json' | sort | head -n 1)
code=0
message=$("$build/selkie" check "$scene" 2>&1 >/dev/null) || code=$?
[ "$code" -eq 2 ] || { echo "selkie check without json-c: exit code $code, 2 expected: $message"; exit 1; }
case $message in
*libjson-c-dev*) ;;
*) echo "selkie check without json-c does not say what to install: $message"; exit 1 ;;
esac
