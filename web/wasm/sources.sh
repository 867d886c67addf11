#!/bin/sh
# Fetches the sources of json-c and ODE, which `make web` compiles, as source packages of Debian: apt-get checks their
# signatures. Usage: sources.sh FOLDER; leaves FOLDER/json-c and FOLDER/ode.
set -eu
mkdir -p "$1"
cd "$1"
[ -d json-c ] && [ -d ode ] && exit 0
mkdir -p packages/lists/partial packages/cache/archives/partial
cd packages
# A list of its own: the machine's need not have any of sources.
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >sources.list
apt="apt-get -q -o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
if ! { $apt update && $apt source --download-only json-c=0.16-2 ode=2:0.16.2-1; } >apt.log 2>&1; then
    echo "the sources of json-c and ODE cannot be fetched: see $PWD/apt.log" >&2
    exit 1
fi
mkdir -p ../json-c ../ode
tar xf json-c_*.orig.tar.gz -C ../json-c --strip-components=1
tar xf ode_*.orig.tar.gz -C ../ode --strip-components=1
