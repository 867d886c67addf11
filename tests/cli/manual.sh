#!/bin/bash
# Every example of these pages of the manual runs: scenes, keys of a scene and commands, for a few steps each.
. "$(dirname "$0")/common.sh"

pages="viscosity walls experiments scene sources"
files=""
for page in $pages; do
    files="$files $source/docs/manual/$page.md"
done
mkdir examples
# shellcheck disable=SC2086 # a list of files
python3 "$source/tests/cli/manual_examples.py" examples $files || exit 1
ln -s "$source/scenes" scenes

# Short, coarse, and without pictures: whether the keys do what they say is left to the tests of the physics.
short="--set time.end=0.01 -j 1 -q --force"

for scene in examples/*.json; do
    # shellcheck disable=SC2086 # a list of options
    check "$(basename "$scene")" "$selkie" run "$scene" $short --out out/example
done

while IFS= read -r command; do
    coarse=
    case $command in *_3d*) coarse="--set domain.resolution=24" ;; esac
    case $command in "selkie sweep"*) options="--set time.end=0.01" ;; *) options="$short $coarse --out out/command" ;; esac
    check "$command" bash -c "${command/#selkie/\"$selkie\"} $options"
done <examples/commands

finish
