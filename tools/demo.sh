#!/bin/sh
# The demo: two scenes simulated, drawn and plotted into out/demo. Usage: tools/demo.sh BUILD OUT
set -eu
build=${1:-build}
out=${2:-out/demo}
selkie=$build/selkie
start=$(date +%s)

mkdir -p "$out"
for scene in double_dam_2d dam_break_3d; do
    folder=$out/$scene
    # The demo's own folder: made anew each time, so that the demo shows this build and not an older one.
    rm -rf "$folder"
    printf '\n== %s\n' "$scene"
    "$selkie" run "scenes/examples/$scene.json" --out "$folder"
    "$selkie" render "$folder"
    "$selkie" plot "$folder"
done

printf '\nThe demo took %d s. It left:\n' $(($(date +%s) - start))
for kind in 'films:*.mp4' 'plots:*.png' 'plots:*.svg' 'tables:*.csv'; do
    find "$out" -path '*/frames/*' -prune -o -path '*/pictures/*' -prune -o -name "${kind#*:}" -print | sort |
        while read -r file; do printf '  %-7s %s\n' "${kind%%:*}" "$file"; done
done
find "$out" -name '*.png' -printf '%h\n' | sort | uniq -c |
    while read -r count folder; do [ "$count" -lt 5 ] || printf '  %-7s %s/ (%d PNG files)\n' pictures "$folder" "$count"; done
