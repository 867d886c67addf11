# The page without a server (`make web`), where it was built: its size, and that it works in a headless Chromium.
. "$(dirname "$0")/_browser.sh"
site=${SELKIE_SITE:-$source/build-web/site}
[ -f "$site/selkie.wasm" ] || skip "make web has not been run"
bytes=$(cat "$site"/*.js "$site"/*.css "$site"/*.html "$site"/*.svg "$site"/*.wasm | gzip -9 | wc -c)
[ "$bytes" -lt 1000000 ] && good "the page has $bytes bytes compressed" || bad "the page has $bytes bytes compressed, over 1 MB"
check "reduced fluids and a liquid in WebAssembly" timeout 200 node "$source/tests/cli/web.mjs" "$site" "$chromium" pictures

# At most three times the processor time of one native thread: the 2D double dam of 71,100 particles, 60 steps of 5 ms.
scene=$source/scenes/idp/double_dam_2d.json
sed 's/"step": 0.02/"step": 0.005/' "$scene" >dam.json
TIMEFORMAT=%U
native=$({ time "$selkie" run dam.json --out native --quiet -j 1 --end 0.3 --set output.every=1000 2>/dev/null; } 2>&1)
web=$(node --no-liftoff "$source/tests/cli/web_speed.mjs" "$(dirname "$site")" dam.json 55 2>/dev/null | sed 's/.*, \([0-9.]*\) ms.*/\1/')
ratio=$(awk "BEGIN {print ${web:-0} * 60 / 1000 / ($native)}")
awk "BEGIN {exit !($ratio > 0.2 && $ratio < 3)}" && good "a step takes $ratio times as long as natively" || bad "a step takes $ratio times as long as natively"
finish
