#!/bin/sh
# tools/setup.sh with package managers that only pretend: what it does when another installation runs, when a release lacks
# a package, and on systems without apt-get. Nothing is installed. Usage: setup.sh
set -eu
setup=$(cd "$(dirname "$0")/../.." && pwd)/tools/setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf '%s\n' "$*"
    cat "$work/said.txt"
    exit 1
}

# A folder of programs for each case: the few that the script calls, and stand-ins.
tools() { # tools CASE: makes $work/CASE and sets `bin`
    bin=$work/$1
    mkdir -p "$bin"
    for tool in sh cat date grep mktemp printf rm sed sleep tail tr uname; do
        ln -sf "$(command -v "$tool")" "$bin/$tool"
    done
}
stand_in() { # stand_in NAME: a program of that name from standard input
    { echo '#!/bin/sh'; cat; } >"$bin/$1"
    chmod +x "$bin/$1"
}
run() { # run EXPECTED_CODE GROUP...: what it says goes to $work/said.txt
    expected=$1
    shift
    code=0
    PATH=$bin "$bin/sh" "$setup" "$@" >"$work/said.txt" 2>&1 || code=$?
    [ "$code" -eq "$expected" ] || fail "setup.sh $*: exit code $code, $expected expected. It said:"
}
says() { grep -q -e "$1" "$work/said.txt" || fail "setup.sh does not say '$1'. It said:"; }
says_not() { ! grep -q -e "$1" "$work/said.txt" || fail "setup.sh says '$1'. It said:"; }

debian() { # debian CASE: root, nothing installed, every package but libembree-dev and libode-dev to be had
    tools "$1"
    echo 'echo 0' | stand_in id
    echo 'exit 1' | stand_in dpkg-query
    echo 'case $2 in libembree-dev) ;; libode-dev) echo "  Candidate: (none)" ;; *) echo "  Candidate: 1.0" ;; esac' | stand_in apt-cache
}

# --- Another program holds the lists' lock twice, then dpkg's once --------------------------------------------------------
debian locked
stand_in apt-get <<END
echo "\$*" >>"$work/calls.txt"
calls=\$(grep -c . "$work/calls.txt")
if [ "\$calls" -le 2 ]; then
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"
    exit 100
elif [ "\$calls" -eq 4 ]; then
    echo "E: Could not get lock /var/lib/dpkg/lock-frontend - open (11: Resource temporarily unavailable)"
    exit 100
fi
END
run 0 build
says 'setup: done'
says 'lists/lock, held by process 77 (apt-get)'
[ "$(grep -c waiting "$work/said.txt")" -eq 1 ] || fail "one line about waiting expected. It said:"
[ "$(grep -c '^update' "$work/calls.txt")" -eq 3 ] || fail "apt-get update was to be tried three times. It said:"
[ "$(grep -c '^install' "$work/calls.txt")" -eq 2 ] || fail "apt-get install was to be tried twice. It said:"

# --- Optional packages that a release does not have are left out -----------------------------------------------------------
says 'libembree-dev is left out'
says 'libode-dev is left out'
grep -q '^install.* cmake .*libassimp-dev' "$work/calls.txt" || fail "the others are not installed. It said:"
! grep -q '^install.*lib\(embree\|ode\)-dev' "$work/calls.txt" || fail "a package without a candidate is installed. It said:"

# --- The lock is not given up in time: an error, no endless loop -----------------------------------------------------------
stand_in apt-get <<'END'
echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"
exit 100
END
SELKIE_SETUP_WAIT=1
export SELKIE_SETUP_WAIT
run 1 build
says 'waited too long'

# --- A needed package cannot be had, an installation fails, nobody may install ----------------------------------------------
echo 'exit 0' | stand_in apt-get
echo 'exit 0' | stand_in apt-cache
run 1 build
says 'build-essential is needed'
debian broken
echo 'case $1 in install) echo "E: Unable to fetch some archives"; exit 100 ;; esac' | stand_in apt-get
run 1 test
says 'Unable to fetch some archives'
echo 'echo 1000' | stand_in id
run 1 test
says 'neither root nor sudo'
run 2 everything
says "unknown group 'everything'"

# --- All is there: not a word -------------------------------------------------------------------------------------------
debian complete
echo 'printf installed' | stand_in dpkg-query
echo 'exit 1' | stand_in apt-get
run 0 all
[ ! -s "$work/said.txt" ] || fail "nothing was missing, but setup.sh says:"

# --- Other systems: names and command, then on with what is there -----------------------------------------------------------
for system in "dnf:rpm:dnf install .*assimp-devel" "zypper:rpm:zypper install .*assimp-devel" \
    "pacman:pacman:pacman -S --needed .*assimp" "apk:apk:apk add .*assimp-dev" "brew:brew:brew install .*assimp"; do
    manager=${system%%:*}
    query=${system#*:}
    tools "$manager"
    echo 'exit 1' | stand_in "$manager"
    echo 'case "$*" in *cmake*) exit 0 ;; esac; exit 1' | stand_in "${query%%:*}"
    run 0 all
    says "${query#*:}"
    says_not 'cmake'
done
tools nothing
run 0 build
says 'no package manager found'
says 'libassimp-dev'
echo "set-up: locks, missing packages and other systems as expected"
