#!/bin/sh
# Puts the static folder together. Usage: site.sh ROOT BUILD SITE
set -eu
root=$1 build=$2 site=$3
rm -rf "$site"
mkdir -p "$site/scenes"
cp "$root"/web/*.html "$root"/web/*.css "$root"/web/*.js "$root"/web/*.svg "$site/"
cp "$build"/selkie.js "$build"/selkie.wasm "$build"/selkie_threads.js "$build"/selkie_threads.wasm \
    "$build"/selkie_threads.worker.js "$site/"
echo 'export const hasServer = false;' >"$site/config.js"

# Small 2D scenes that need no other files.
cd "$root/scenes"
printf '[' >"$site/scenes.json"
separator=
for name in reduced/play reduced/game reduced/jet_small reduced/shear_small reduced/drafting_small reduced/fish \
    reduced/pinball reduced/cylinder_wake reduced/wall_image examples/double_dam_2d \
    examples/moving_paddle_2d examples/sloshing_2d examples/oil_on_water_2d examples/viscous_2d examples/channel_2d \
    splash/drop_2d validation/standing_wave_2d; do
    [ -f "$name.json" ] || continue
    mkdir -p "$site/scenes/$(dirname "$name")"
    cp "$name.json" "$site/scenes/$name.json"
    title=$(sed -n 's/.*"title": *"\([^"]*\)".*/\1/p' "$name.json" | head -1)
    printf '%s{"name": "%s", "title": "%s", "dimension": 2}' "$separator" "$name" "$title" >>"$site/scenes.json"
    separator=,
done
printf ']\n' >>"$site/scenes.json"
