# Shared by the tests in a browser: sets chromium, and leaves playwright-core, which npm fetches, in the current folder.
. "$(dirname "$0")/common.sh"
skip() {
    echo "not tested in a browser: $1"
    exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium"
command -v node >/dev/null && command -v npm >/dev/null || skip "no node or npm"
# SELKIE_NODE_MODULES is a folder that holds playwright-core already. Else the build folder keeps it for the next test.
kept=${SELKIE_NODE_MODULES:-$(dirname "$selkie")/node_modules}
if [ ! -d "$kept/playwright-core" ]; then
    timeout 60 npm install --no-audit --no-fund --ignore-scripts playwright-core@1.65.0 >npm.log 2>&1 || skip "npm cannot fetch playwright-core"
    mv node_modules "$kept" 2>/dev/null || true # another test may have been faster
fi
[ -d node_modules ] || ln -s "$kept" node_modules
mkdir pictures
