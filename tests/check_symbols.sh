#!/bin/sh
# What the built library shows and leans on, read from its symbols:
#   - the shared library exports selkie_* and nothing else; the static one defines only selkie_* and sk_* globally
#     (names that begin with a period are locks that the compiler makes for OpenMP);
#   - nothing in it prints to the terminal, exits or aborts;
#   - it has no mutable global state (.data and .bss are empty in every object).
# Two exceptions: the engine of rigid bodies is told once at a time that it is used, which a mutex sees to
# (src/rigid/rigid_ode.c); and the mesh importer runs in a child process of its own (src/geom/mesh_import.c), which sets its signals and
# leaves by _exit(), and a mutex lets one child run at a time.
# Objects that nvcc makes (*_2d.o, *_3d.o) have C++ names, and state in .bss that registers their kernels.
# Usage: check_symbols.sh BUILD
set -u
build=$1
failed=0
complain() {
    echo "$1"
    printf '%s\n' "$2" | head -n 20 | sed 's/^/    /'
    failed=1
}
shared=$build/libselkie.so
archive=$build/libselkie.a

strange=$(nm -D --defined-only "$shared" | awk '$2 ~ /[TDBRVW]/ && $3 !~ /^(selkie_|_init$|_fini$|\.)/ { print $3 }')
[ -z "$strange" ] || complain "libselkie.so exports names that do not start with selkie_:" "$strange"

strange=$(nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 && $3 !~ /^(selkie_|sk_|\.|_Z[0-9]+sk_cuda_)/ { print $3 }')
[ -z "$strange" ] || complain "libselkie.a defines names that start with neither selkie_ nor sk_:" "$strange"

rude=$(nm -u "$archive" 2>/dev/null | awk '
    /\.o:$/ { object = $1 }
    $1 == "U" && $2 ~ /^(printf|__printf_chk|vprintf|__vprintf_chk|puts|putchar|perror|stdout|stderr|exit|_exit|_Exit|quick_exit|abort|__assert_fail|raise|signal|setlocale)$/ \
        { print object, $2 }' | grep -v -x -E 'mesh_import.c.o: (_exit|signal)')
[ -z "$rude" ] || complain "the library must not print, exit, abort or change the process:" "$rude"

state=$(size -A "$archive" 2>/dev/null | awk '
    /\.o +\(ex / { object = $1 }
    $1 ~ /^\.(data|bss)(\.[^r].*)?$/ && $2 > 0 { print object, $1, $2, "bytes" }' |
    grep -v -x -E '((mesh_import|rigid_ode).c.o|[a-z_]+_[23]d.o) .bss [0-9]+ bytes')
[ -z "$state" ] || complain "the library must have no mutable global state:" "$state"
exit $failed
