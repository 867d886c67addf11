# Reduced fluids and the game in the studio, in a headless Chromium.
. "$(dirname "$0")/_browser.sh"
"$selkie" doctor | grep -q '^websockets *there' || skip "this build has no libwebsockets"
"$selkie" doctor | grep -q '^ode *there' || skip "this build has no ODE for bodies"
cat >stirred.json <<'SCENE'
{ // a box of dye
  "title": "Stirred", "discretization": "reduced", "domain": {"dimension": 2, "size": [1, 1], "resolution": 32},
  "time": {"end": 3000, "fps": 25, "step": 0.02}, "particles": {"per_cell": 4}, "reduced": {"modes": 36},
  "forces": [{"type": "jet", "from": [0.2, 0.2], "to": [0.5, 0.2], "radius": 0.1, "strength": 0.2, "end": 0.2}],
  "materials": [{"name": "blue"}, {"name": "amber"}],
  "liquids": [{"material": "blue", "shape": {"type": "box", "min": [0, 0], "max": [0.5, 1]}},
              {"material": "amber", "shape": {"type": "box", "min": [0.5, 0], "max": [1, 1]}}],
}
SCENE
check "draw, keep, drive, bodies, the game" \
    timeout 280 node "$source/tests/cli/studio_reduced.mjs" "$selkie" "$chromium" stirred.json pictures
finish
