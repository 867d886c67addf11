# The studio without a browser: its rules of security, its messages, a run that replays.
. "$(dirname "$0")/common.sh"
"$selkie" studio --port 70000 2>&1 | grep -q "port" && good "a port that cannot be is refused" || bad "--port 70000"
if ! "$selkie" doctor | grep -q '^websockets *there'; then
    expect "a build without libwebsockets says so" 2 'libwebsockets-dev' studio
    finish
fi
command -v python3 >/dev/null || { echo "python3 is missing: the studio is not tested"; exit 77; }
expect "an unknown scene" 2 'no scene of that name' studio --no-browser no_such_scene
command -v node >/dev/null && check "pictures between states" node "$source/tests/cli/studio_between.mjs"
check "security, messages, replay" python3 "$source/tests/cli/studio_checks.py" "$selkie" "$work"
finish
