# Shared by the scripts of this folder, which are called with the build folder as their only argument.
# Sets: selkie (the command), source (the project), work (an empty folder that is removed at the end, and where we are).

set -u
export LC_ALL=C OMP_WAIT_POLICY=passive
if [ $# -lt 1 ] || [ ! -x "$1/selkie" ]; then
    echo "usage: $0 BUILD-FOLDER (with the command selkie in it)" >&2
    exit 2
fi
selkie=$(cd "$1" && pwd)/selkie
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
unset SELKIE_SCENES
checks=0
failures=0

good() {
    checks=$((checks + 1))
    echo "ok    $1"
}

bad() {
    checks=$((checks + 1))
    failures=$((failures + 1))
    echo "FAIL  $1"
}

# check WHAT COMMAND...: the command must succeed; what it prints is shown where it does not.
check() {
    what=$1
    shift
    if "$@" >"$work/.output" 2>&1; then
        good "$what"
    else
        bad "$what (exit code $?): $*"
        sed 's/^/      | /' "$work/.output"
    fi
}

# expect WHAT CODE PATTERN ARGUMENTS...: selkie must leave with CODE and one line on stderr, "selkie: ..." with PATTERN
# (extended regular expression) in it.
expect() {
    what=$1
    code=$2
    pattern=$3
    shift 3
    "$selkie" "$@" >"$work/.output" 2>"$work/.error"
    got=$?
    lines=$(wc -l <"$work/.error")
    if [ "$got" -ne "$code" ]; then
        bad "$what: exit code $got, not $code"
    elif [ "$lines" -ne 1 ] || ! grep -q '^selkie: ' "$work/.error"; then
        bad "$what: not one line that begins with 'selkie: '"
    elif ! grep -Eq -- "$pattern" "$work/.error"; then
        bad "$what: the message has no '$pattern'"
    else
        good "$what: $(cut -c9- "$work/.error" | cut -c-150)"
        return 0
    fi
    sed 's/^/      | /' "$work/.output" "$work/.error"
    return 1
}

finish() {
    echo "$checks checks, $failures failures"
    [ "$failures" -eq 0 ]
    exit
}

# A table without its columns of milliseconds, which differ from run to run.
without_times() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) keep[i] = $i !~ /_ms$/ }
             { line = ""; for (i = 1; i <= NF; i++) if (keep[i]) line = line "," $i; print line }' "$1"
}

# same_run A B: the frames and tables of two runs are the same to the last bit.
same_run() {
    without_times "$1/stats.csv" >"$work/.a" && without_times "$2/stats.csv" >"$work/.b" &&
        cmp "$work/.a" "$work/.b" && cmp "$1/probes.csv" "$2/probes.csv" &&
        [ "$(cd "$1/frames" && ls | wc -l)" -eq "$(cd "$2/frames" && ls | wc -l)" ] || return 1
    for frame in "$1"/frames/*; do
        cmp "$frame" "$2/frames/${frame##*/}" || return 1
    done
}

# A dam that breaks in a box of 32 x 24 cells: a step takes about a millisecond.
write_dam() {
    cat >"$1" <<'SCENE'
{
    // small and quick
    "title": "A small dam",
    "domain": {"dimension": 2, "size": [1, 0.75], "resolution": 32},
    "time": {"end": 0.5, "fps": 20, "step": 0.0025},
    "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.35, 0.5]}}],
    "obstacles": [{"shape": {"type": "sphere", "center": [0.7, 0.1], "radius": 0.1}}],
    "probes": [{"name": "level", "type": "height", "at": [0.2, 0]}, {"name": "front", "type": "front", "axis": "x"}],
}
SCENE
}
