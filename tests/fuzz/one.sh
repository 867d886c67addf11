#!/bin/sh
# Runs one fuzzer for some seconds. Usage: one.sh SANITIZED_BUILD NAME SECONDS FOUND [SEED]
# The same seed tries the same inputs in the same order; without one, or with 0, every run tries others.
# What it learns stays in BUILD/fuzz/corpus/NAME for the next time; an input that breaks something lands in FOUND.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
name=$2
seconds=$3
found=$4
seed=${5:-0}
corpus=$build/fuzz/corpus/$name
mkdir -p "$corpus" "$found"

seeds=""
options=""
case $name in
fuzz_scene)
    seeds="$source/scenes"
    options="-max_len=8192 -dict=$source/tests/fuzz/scene.dict"
    ;;
fuzz_checkpoint) options="-max_len=262144" ;;
fuzz_container) options="-max_len=4096" ;;
*) options="-max_len=16384" ;;
esac
[ ! -d "$source/tests/fuzz/seeds/$name" ] || seeds="$seeds $source/tests/fuzz/seeds/$name"

export OMP_NUM_THREADS=1
export LSAN_OPTIONS="suppressions=$source/tests/leaks.supp:print_suppressions=0"
export ASAN_OPTIONS="allocator_may_return_null=1:detect_stack_use_after_return=1"
# $seeds and $options are lists of words.
if "$build/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2500 -malloc_limit_mb=2000 -print_final_stats=1 -seed="$seed" \
    -artifact_prefix="$found/$name-" $options "$corpus" $seeds >"$build/fuzz/$name.log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz/$name.log")
    echo "$name: $runs inputs in $seconds s, nothing found"
else
    tail -n 60 "$build/fuzz/$name.log"
    echo "$name: found an input that breaks it: see $found"
    exit 1
fi
