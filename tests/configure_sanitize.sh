#!/bin/sh
# Configures the build that looks for mistakes: AddressSanitizer, UBSan and, with clang, the fuzzers.
# clang is preferred because one build then serves both the tests and libFuzzer, and because it makes sure that the
# sources do not lean on one compiler. Usage: tests/configure_sanitize.sh FOLDER
set -eu
folder=$1
[ ! -f "$folder/build.ninja" ] || exit 0
mkdir -p "$folder"
if command -v clang >/dev/null 2>&1; then
    compiler="-DCMAKE_C_COMPILER=clang -DSELKIE_FUZZ=ON"
else
    compiler=""
    echo "clang is missing: sanitizing with the default compiler, no fuzzing"
fi
# No build type, so that assertions stay in. $compiler is a list of words.
# Libraries are linked: LeakSanitizer crashes at the end of a program that loaded one with threads (embree's) later.
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_C_FLAGS=-O1 -g" -DSELKIE_SIMD=none \
    -DSELKIE_SANITIZE=ON -DSELKIE_LATE=OFF $compiler \
    >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log"
    exit 1
}
