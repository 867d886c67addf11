#!/bin/sh
# Fuzzes every reader, one after the other. Usage: run.sh SANITIZED_BUILD SECONDS_EACH FOUND
set -u
failed=0
count=0
[ -d "$1/fuzz" ] || { echo "no fuzzers in $1: they need clang"; exit 1; }
for program in "$1"/fuzz/fuzz_*; do
    case $program in *.log) continue ;; esac
    [ -x "$program" ] || continue
    count=$((count + 1))
    sh "$(dirname "$0")/one.sh" "$1" "$(basename "$program")" "$2" "$3" || failed=$((failed + 1))
done
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
