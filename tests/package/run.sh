#!/bin/sh
# Installs into a fresh folder, moves it (an installed tree must not depend on where it was made), builds the example
# program of the documentation against it in every way a user would, and runs it. Usage: run.sh BUILD
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '%s\n' "$*"; }
fail() {
    say "$*"
    exit 1
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log" 2>"$work/hints.txt" ||
    { cat "$work/install.log" "$work/hints.txt"; exit 1; }
# Under another prefix than /usr and /usr/local it says what a user has to set.
for hint in "PKG_CONFIG_PATH=$work/first/" "CMAKE_PREFIX_PATH=$work/first" "LD_LIBRARY_PATH=$work/first/" "PATH=$work/first/bin:"; do
    grep -q "$hint" "$work/hints.txt" || { cat "$work/hints.txt"; fail "the installation does not say $hint"; }
done
prefix=$work/prefix
mv "$work/first" "$prefix"
library=$(dirname "$(find "$prefix" -name libselkie.a)")

for file in include/selkie/selkie.h include/selkie/version.h; do
    [ -f "$prefix/$file" ] || fail "not installed: $file"
done
for kind in libselkie.a libselkie.so pkgconfig/selkie.pc cmake/selkie/selkieConfig.cmake cmake/selkie/selkieConfigVersion.cmake; do
    [ -e "$library/$kind" ] || fail "not installed: $kind"
done
for file in doc/selkie/LICENSE bash-completion/completions/selkie zsh/site-functions/_selkie \
    fish/vendor_completions.d/selkie.fish man/man1/selkie.1; do
    [ -s "$prefix/share/$file" ] || fail "not installed: share/$file"
done
private=$(find "$prefix/include" -name '*.h' -exec grep -l '#include "' {} + || true)
[ -z "$private" ] || fail "installed headers include private ones: $private"

cd "$work"
# PKG_CONFIG_PATH must be enough: programs find the library through their rpath.
unset LD_LIBRARY_PATH
export PKG_CONFIG_PATH="$library/pkgconfig"
run() { # run NAME PROGRAM: it must succeed and say that the resumed world is the same
    "$2" >"$work/$1.txt" 2>&1 || { cat "$work/$1.txt"; fail "the example built $1 failed"; }
    grep -q 'ends where the first one does' "$work/$1.txt" || { cat "$work/$1.txt"; fail "the example built $1 said something else"; }
    say "example built $1: $(tail -n 1 "$work/$1.txt")"
}

# With pkg-config, shared and static. A C++ compiler is not asked for, nor any flag of ours.
cc -std=c11 -Wall -Wextra -Werror "$source/docs/examples/dam_break.c" $(pkg-config --cflags --libs selkie) -lm -o shared
run "with pkg-config" ./shared
others=$(pkg-config --static --libs selkie | sed 's/-lselkie//')
cc -std=c11 "$source/docs/examples/dam_break.c" $(pkg-config --cflags selkie) "$library/libselkie.a" $others -lm -o static
! ldd ./static | grep -q libselkie || fail "the static example needs libselkie.so"
run "with pkg-config --static" ./static

# With CMake.
cmake -S "$source/docs/examples" -B examples -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >cmake.log 2>&1 &&
    cmake --build examples >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
run "with CMake" ./examples/dam_break
run "with CMake, static" ./examples/dam_break_static
./examples/game "$source/scenes/reduced/game.json" | grep -q '5.0 s  score' || fail "the game example does not end"
./examples/steering | grep -q 'energies differ by 0 J' || fail "the record of the steering example plays otherwise"

# The command, from where it was installed.
if [ -x "$build/selkie" ]; then
    "$prefix/bin/selkie" --version | grep -q "$(pkg-config --modversion selkie)" || fail "selkie --version and selkie.pc disagree"
    "$prefix/bin/selkie" list | grep -q dam_break || fail "the installed command does not list the scenes"
    [ -f "$prefix/share/selkie/scenes/examples/dam_break_3d.json" ] || fail "scenes are not installed"
    [ -f "$prefix/share/man/man1/selkie.1" ] || fail "the manual page is not installed"
    find "$prefix/share/selkie" -name '*.schema.json' | grep -q . || fail "the schema is not installed"
fi

# A package for the system: no rpath, no hints, all of it below DESTDIR.
DESTDIR=$work/stage cmake --install "$build" --prefix /usr >"$work/install.log" 2>"$work/hints.txt"
[ ! -s "$work/hints.txt" ] || { cat "$work/hints.txt"; fail "a staged installation prints hints"; }
staged=$(find "$work/stage/usr" -name selkie.pc)
[ -n "$staged" ] || fail "selkie.pc is not below DESTDIR"
! grep rpath "$staged" || fail "selkie.pc for /usr has an rpath"
