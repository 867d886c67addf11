#!/bin/sh
# Each public header must compile alone, as C11 and as C++17, without a warning.
# Usage: check_headers.sh BUILD CC [CXX]
set -u
source=$(cd "$(dirname "$0")/.." && pwd)
build=$1
cc=$2
cxx=${3:-}
failed=0
count=0
for header in "$source"/include/selkie/*.h "$build"/generated/selkie/version.h; do
    name=selkie/$(basename "$header")
    # Included twice: the guard is tested too. C forbids a file that declares nothing, hence the last line.
    code="#include <$name>
#include <$name>
typedef int something;"
    flags="-fsyntax-only -Wall -Wextra -pedantic -Werror -I$source/include -I$build/generated"
    printf '%s\n' "$code" | $cc -std=c11 -x c $flags - || { echo "$name does not compile alone as C11"; failed=1; }
    if [ -n "$cxx" ]; then
        printf '%s\n' "$code" | $cxx -std=c++17 -x c++ $flags - || { echo "$name does not compile alone as C++17"; failed=1; }
    fi
    count=$((count + 1))
done
[ -n "$cxx" ] || echo "no C++ compiler here: checked as C only"
echo "$count headers"
exit $failed
