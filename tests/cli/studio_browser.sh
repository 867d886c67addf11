# The studio in a headless Chromium, where there is one.
. "$(dirname "$0")/_browser.sh"
"$selkie" doctor | grep -q '^websockets *there' || skip "this build has no libwebsockets"
cat >basin.json <<'SCENE'
{ // a basin
  "title": "Basin", "domain": {"dimension": 2, "size": [1, 1], "resolution": 48},
  "time": {"end": 3000, "fps": 25}, // longer than the test takes on a busy machine
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}}],
  "obstacles": [{"name": "post", "shape": {"type": "box", "min": [0.7, 0], "max": [0.8, 0.2]}}],
}
SCENE
check "open, run, drag, pause, change a key, see an error" \
    timeout 280 node "$source/tests/cli/studio_browser.mjs" "$selkie" "$chromium" basin.json pictures
finish
