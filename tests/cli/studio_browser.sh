# The studio in a headless Chromium, where there is one, driven by playwright-core, which npm fetches.
. "$(dirname "$0")/common.sh"
skip() {
    echo "the studio is not tested in a browser: $1"
    exit 77
}
"$selkie" doctor | grep -q '^websockets *there' || skip "this build has none"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium"
command -v node >/dev/null && command -v npm >/dev/null || skip "no node or npm"
# SELKIE_NODE_MODULES is a folder that holds playwright-core already.
if [ -n "${SELKIE_NODE_MODULES:-}" ]; then
    ln -s "$SELKIE_NODE_MODULES" node_modules
else
    timeout 60 npm install --no-audit --no-fund --ignore-scripts playwright-core@1.65.0 >npm.log 2>&1 || skip "npm cannot fetch playwright-core"
fi
cat >basin.json <<'SCENE'
{ // a basin
  "title": "Basin", "domain": {"dimension": 2, "size": [1, 1], "resolution": 48},
  "time": {"end": 30, "fps": 25},
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}}],
  "obstacles": [{"name": "post", "shape": {"type": "box", "min": [0.7, 0], "max": [0.8, 0.2]}}],
}
SCENE
cat >stirred.json <<'SCENE'
{ // a box of dye
  "title": "Stirred", "discretization": "reduced", "domain": {"dimension": 2, "size": [1, 1], "resolution": 32},
  "time": {"end": 30, "fps": 25, "step": 0.02}, "particles": {"per_cell": 4}, "reduced": {"modes": 36},
  "forces": [{"type": "jet", "from": [0.2, 0.2], "to": [0.5, 0.2], "radius": 0.1, "strength": 0.2, "end": 0.2}],
  "materials": [{"name": "blue"}, {"name": "amber"}],
  "liquids": [{"material": "blue", "shape": {"type": "box", "min": [0, 0], "max": [0.5, 1]}},
              {"material": "amber", "shape": {"type": "box", "min": [0.5, 0], "max": [1, 1]}}],
}
SCENE
mkdir pictures
check "open, run, drag, pause, change a key, see an error" \
    timeout 200 node "$source/tests/cli/studio_browser.mjs" "$selkie" "$chromium" basin.json pictures
check "reduced fluids: draw, keep, drive, bodies, the game" \
    timeout 280 node "$source/tests/cli/studio_reduced.mjs" "$selkie" "$chromium" stirred.json pictures
finish
