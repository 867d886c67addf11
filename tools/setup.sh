#!/bin/sh
# Installs what Selkie needs, by package name, and only what is missing. Knows Debian 12, Debian 13 and Ubuntu 24.04.
#
#   tools/setup.sh GROUP...     groups: build demo test fuzz web bench all
#
# Nothing is fetched when everything is there. While another program installs packages it waits, SELKIE_SETUP_WAIT seconds
# at most (600). Without root and without sudo it installs nothing and says what to ask for. On systems without apt-get
# (Fedora, Arch, openSUSE, Alpine, macOS) it prints the names of the missing packages and the command that installs them.
set -eu

say() { printf 'setup: %s\n' "$*"; }

# --- What is wanted -------------------------------------------------------------------------------------------------------

# packages MANAGER GROUP: the packages of a group. `core` is needed, all else adds something that the build reports.
packages() {
    case $1-$2 in
    # On arm64 clang's program is more than twice as fast as GCC's (cmake/compiler.cmake).
    apt-core)
        echo build-essential cmake ninja-build pkg-config zlib1g-dev
        [ "$(uname -m)" != aarch64 ] || echo clang libomp-dev
        ;;
    apt-extra) echo libjson-c-dev libassimp-dev libembree-dev libpng-dev libcairo2-dev libode-dev libarpack2-dev liblapack-dev libzstd-dev libwebsockets-dev ;;
    apt-demo) echo ffmpeg ;;
    # VTK and vdb_print read the files of `selkie convert` and `selkie mesh`.
    apt-test) echo libcmocka-dev liblapacke-dev python3 python3-vtk9 libopenvdb-tools ffmpeg clang-format ;;
    # libomp is the OpenMP of clang, which builds the fuzzers and the sanitized library.
    apt-fuzz) echo clang libclang-rt-dev libomp-dev ;;
    apt-web) echo cmake ninja-build emscripten ;;

    dnf-core) echo gcc gcc-c++ make cmake ninja-build pkgconf-pkg-config zlib-devel ;;
    dnf-extra) echo json-c-devel assimp-devel embree-devel libpng-devel cairo-devel ode-devel arpack-devel lapack-devel libzstd-devel libwebsockets-devel ;;
    dnf-demo) echo ffmpeg-free ;;
    dnf-test) echo libcmocka-devel python3 ffmpeg-free clang-tools-extra ;;
    dnf-web) echo cmake ninja-build emscripten ;;
    dnf-fuzz) echo clang compiler-rt libomp-devel ;;

    pacman-core) echo base-devel cmake ninja pkgconf zlib ;;
    pacman-extra) echo json-c assimp embree libpng cairo ode arpack lapack zstd libwebsockets ;;
    pacman-demo) echo ffmpeg ;;
    pacman-test) echo cmocka python ffmpeg clang ;;
    pacman-web) echo cmake ninja emscripten ;;
    pacman-fuzz) echo clang compiler-rt openmp ;;

    zypper-core) echo gcc gcc-c++ make cmake ninja pkgconf-pkg-config zlib-devel ;;
    zypper-extra) echo libjson-c-devel assimp-devel embree-devel libpng16-devel cairo-devel libode-devel libzstd-devel libwebsockets-devel ;;
    zypper-demo) echo ffmpeg ;;
    zypper-test) echo libcmocka-devel python3 ffmpeg clang-tools ;;
    zypper-web) echo cmake ninja emscripten ;;
    zypper-fuzz) echo clang libomp-devel ;;

    apk-core) echo build-base linux-headers bash cmake ninja-build pkgconf zlib-dev ;;
    apk-extra) echo json-c-dev assimp-dev embree-dev libpng-dev cairo-dev ode-dev arpack-dev lapack-dev zstd-dev libwebsockets-dev ;;
    apk-demo) echo ffmpeg ;;
    apk-test) echo cmocka-dev python3 ffmpeg clang-extra-tools ;;
    apk-web) echo cmake ninja-build emscripten ;;
    apk-fuzz) echo clang compiler-rt openmp-dev ;;

    # Apple's compiler comes without OpenMP.
    brew-core) echo gcc cmake ninja pkgconf zlib ;;
    brew-extra) echo json-c assimp embree libpng cairo ode arpack lapack zstd libwebsockets ;;
    brew-demo) echo ffmpeg ;;
    brew-test) echo cmocka python ffmpeg clang-format ;;
    brew-web) echo cmake ninja emscripten ;;
    brew-fuzz) echo llvm libomp ;;
    esac
}

[ $# -gt 0 ] || set -- build
groups=""
for group in "$@"; do
    case $group in
    build | bench) groups="$groups core extra" ;;
    demo | test | fuzz | web) groups="$groups $group" ;;
    all) groups="$groups core extra demo test fuzz" ;;
    *)
        say "unknown group '$group'; one of: build demo test fuzz web bench all" >&2
        exit 2
        ;;
    esac
done

manager=""
for program in apt-get dnf pacman zypper apk brew; do
    if command -v "$program" >/dev/null 2>&1; then
        manager=${program%-get}
        break
    fi
done
if [ -z "$manager" ]; then
    say "no package manager found; going on with what is here. On Debian the packages are:"
    say "    $(for group in $groups; do packages apt "$group"; done | tr '\n' ' ')"
    exit 0
fi

installed() {
    case $manager in
    apt) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    dnf | zypper) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
    pacman) pacman -Q "$1" >/dev/null 2>&1 ;;
    apk) apk info -e "$1" >/dev/null 2>&1 ;;
    brew) brew list --versions "$1" >/dev/null 2>&1 ;;
    esac
}

missing=""
for package in $(for group in $groups; do packages "$manager" "$group"; done); do
    case " $missing " in *" $package "*) continue ;; esac
    installed "$package" || missing="${missing:+$missing }$package"
done
[ -n "$missing" ] || exit 0

# --- Other systems: the names and the command; CMake reports what it does not find ----------------------------------------

case $manager in
apt) ;;
dnf) command="dnf install" ;;
pacman) command="pacman -S --needed" ;;
zypper) command="zypper install" ;;
apk) command="apk add" ;;
brew) command="brew install" ;;
esac
if [ "$manager" != apt ]; then
    say "going on with what is here. Some packages are missing; names may differ between releases:"
    say "    $command $missing"
    exit 0
fi

# --- Debian and its relatives ---------------------------------------------------------------------------------------------

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    say "these packages are missing, and there is neither root nor sudo to install them. Ask for:" >&2
    say "    apt-get update && apt-get install --no-install-recommends $missing" >&2
    exit 1
fi

release=$( (. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}") 2>/dev/null || true)
case $release in
"debian 12" | "debian 13" | "ubuntu 24.04") ;;
*) say "this system (${release:-unknown}) is not Debian 12, Debian 13 or Ubuntu 24.04; going on with their package names" ;;
esac

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
log=$(mktemp)
trap 'rm -f "$log"' EXIT
deadline=$(($(date +%s) + ${SELKIE_SETUP_WAIT:-600}))
waiting=""

# apt ARGUMENTS...: apt-get, again while another program holds one of the locks. The option DPkg::Lock::Timeout would wait
# for dpkg's lock only; the lists and the archives have their own.
apt() {
    while ! $as_root apt-get "$@" >"$log" 2>&1; do
        # "E: Could not get lock FILE. It is held by process 123 (apt-get)"; older versions leave the second sentence out.
        lock=$(sed -n 's/^[EW]: Could not get lock \([^ ]*\).*/\1/p' "$log" | sed -n '1{s/\.$//;p;}')
        [ -n "$lock" ] && [ "$(date +%s)" -lt "$deadline" ] || return 1
        if [ -z "$waiting" ]; then
            waiting=1
            holder=$(sed -n 's/^.*It is held by process \(.*\)$/, held by process \1/p' "$log" | sed -n 1p)
            say "another program is installing packages ($lock$holder); waiting for it"
        fi
        sleep 2
    done
}

failed() {
    tail -n 20 "$log" >&2
    say "$1 (above: the end of what apt-get said); nothing was built" >&2
    exit 1
}

# One source of packages that cannot be reached is no reason to stop: the lists at hand may do.
apt update -qq || {
    [ -z "$lock" ] || failed "waited too long"
    say "apt-get update failed: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log"); trying the package lists at hand"
}

# What this release does not have: the core cannot do without, all else is left out.
wanted=""
core=$(packages apt core)
for package in $missing; do
    candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
    if [ -n "$candidate" ] && [ "$candidate" != "(none)" ]; then
        wanted="${wanted:+$wanted }$package"
        continue
    fi
    case " $core " in
    *" $package "*)
        say "$package is needed, and this system (${release:-unknown}) has no such package" >&2
        exit 1
        ;;
    esac
    say "$package is left out: this system (${release:-unknown}) has no such package"
done
[ -n "$wanted" ] || exit 0

say "installing $wanted"
# $wanted is a list of words.
apt install -y -qq --no-install-recommends $wanted || failed "${lock:+waited too long: }apt-get install failed"
say "done"
