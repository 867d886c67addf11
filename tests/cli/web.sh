# The page without a server (`make web`), where it was built: its size, and that it works in a headless Chromium.
. "$(dirname "$0")/_browser.sh"
site=${SELKIE_SITE:-$source/build-web/site}
[ -f "$site/selkie.wasm" ] || skip "make web has not been run"
bytes=$(cat "$site"/*.js "$site"/*.css "$site"/*.html "$site"/*.svg "$site"/*.wasm | gzip -9 | wc -c)
[ "$bytes" -lt 1000000 ] && good "the page has $bytes bytes compressed" || bad "the page has $bytes bytes compressed, over 1 MB"
check "reduced fluids and a liquid in WebAssembly" timeout 200 node "$source/tests/cli/web.mjs" "$site" "$chromium" pictures
finish
