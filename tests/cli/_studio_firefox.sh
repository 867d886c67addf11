# The studio in Firefox, where there is one: the page opens, runs, and draws water.
. "$(dirname "$0")/common.sh"
command -v Xvfb >/dev/null || { echo "not tested in a browser: no Xvfb"; exit 77; }
firefox=$(command -v firefox || command -v firefox-esr) || { echo "not tested in a browser: no firefox"; exit 77; }
command -v python3 >/dev/null || { echo "not tested in a browser: no python3"; exit 77; }
"$selkie" doctor | grep -q '^websockets *there' || { echo "not tested in a browser: this build has no libwebsockets"; exit 77; }
cat >basin.json <<'SCENE'
{"title": "Basin", "domain": {"dimension": 2, "size": [1, 1], "resolution": 32}, "time": {"end": 3000, "fps": 25},
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}}]}
SCENE
site=$source/build-web/site
[ -f "$site/selkie_threads.wasm" ] || site=
check "the page opens, runs and draws" timeout 250 python3 "$source/tests/cli/studio_firefox.py" "$selkie" "$firefox" basin.json $site
finish
