# Shared by the tests in a browser: sets chromium, and leaves playwright-core, which npm fetches, in the current folder.
. "$(dirname "$0")/common.sh"
skip() {
    echo "not tested in a browser: $1"
    exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium"
command -v node >/dev/null && command -v npm >/dev/null || skip "no node or npm"
# SELKIE_NODE_MODULES is a folder that holds playwright-core already.
if [ -n "${SELKIE_NODE_MODULES:-}" ]; then
    ln -s "$SELKIE_NODE_MODULES" node_modules
else
    timeout 60 npm install --no-audit --no-fund --ignore-scripts playwright-core@1.65.0 >npm.log 2>&1 || skip "npm cannot fetch playwright-core"
fi
mkdir pictures
