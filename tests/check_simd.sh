#!/bin/sh
# Builds the numerics for one instruction set (cmake/simd.cmake) and runs their unit tests. Exit code 77, skipped, where the
# processor cannot run it. Usage: check_simd.sh BUILD SET COMPILER
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
set=$2
build=$1/simd-$set
programs="test_transfer test_advect test_sort test_sort_again test_poisson test_bounded test_sph"

case $set in
avx2) needed="avx2 fma f16c bmi2" ;;
avx512) needed="avx512f avx512bw avx512cd avx512dq avx512vl" ;;
neon) needed="asimd" ;;
none) needed="" ;;
*) echo "unknown instruction set $set"; exit 1 ;;
esac
has=$(sed -n 's/^\(flags\|Features\)[[:space:]]*: *//p' /proc/cpuinfo 2>/dev/null | sed -n 1p)
for word in $needed; do
    case " $has " in
    *" $word "*) ;;
    *) echo "skipped: this processor does not have $word, which SELKIE_SIMD=$set needs"; exit 77 ;;
    esac
done

# None of the optional libraries: the numerics do without. Little optimised: vectors that a compiler breaks down to SSE2
# take it five times as long with -O3. ccache makes a second run quick.
launcher=""
if command -v ccache >/dev/null 2>&1; then
    launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
fi
mkdir -p "$build"
# $launcher and $programs are lists of words.
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$3" -DSELKIE_SIMD="$set" -DSELKIE_CORE_ONLY=ON \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 $launcher >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" --target $programs -- --quiet
for program in $programs; do
    "$build/tests/$program" >"$build/$program.log" 2>&1 || { cat "$build/$program.log"; echo "$program fails with SELKIE_SIMD=$set"; exit 1; }
    echo "SELKIE_SIMD=$set: $(tail -n 1 "$build/$program.log")  $program"
done
