#!/bin/sh
# Runs the tests of the plain build, then the fast ones and the fuzzers of the sanitized build, and sums up.
# Usage: tests/run.sh BUILD|- SANITIZED_BUILD|- JOBS        ("-" leaves that half out)
set -u
passed=0
failed=0
start=$(date +%s)
log=$(mktemp)
trap 'rm -f "$log" "$log.status"' EXIT

# half TITLE FOLDER CTEST_ARGUMENTS...: one ctest run, shown without the lines that say that a test has started.
half() {
    printf '\n== %s\n' "$1"
    folder=$2
    shift 2
    { ctest --test-dir "$folder" --output-on-failure -j "$jobs" "$@" 2>&1; echo $? >"$log.status"; } | tee "$log" |
        grep -v -E '^ +Start +[0-9]+: |^Internal ctest changing|^Test project |^$|^Label Time Summary|\*proc'
    summary=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$log")
    if [ -z "$summary" ]; then # no test at all, or ctest itself broke
        failed=$((failed + 1))
        return
    fi
    failed=$((failed + ${summary% *}))
    passed=$((passed + ${summary#* } - ${summary% *}))
    # A crash of ctest after its summary must not read as success.
    [ "$(cat "$log.status")" -eq 0 ] || [ "${summary% *}" -gt 0 ] || failed=$((failed + 1))
}

# Memory that nobody has filled holds large numbers, so that what reads it fails.
MALLOC_PERTURB_=${MALLOC_PERTURB_:-128}
export MALLOC_PERTURB_

jobs=$3
[ "$1" = - ] || half "all tests" "$1"
[ "$2" = - ] || half "fast tests under AddressSanitizer and UBSan, short fuzzing" "$2" -L 'fast|fuzz'

printf '\ntests took %d s\n%d passed, %d failed\n' $(($(date +%s) - start)) "$passed" "$failed"
[ "$failed" -eq 0 ]
