# Compact frames, and what `selkie convert` makes of particle files.
. "$(dirname "$0")/common.sh"
write_dam dam.json

"$selkie" run dam.json --out both --set output.skp=true -q 2>error.txt || bad "run: $(cat error.txt)"
[ "$(ls both/frames/*.skp | wc -l)" -eq 11 ] && good "a compact file a frame" || bad "frames: $(ls both/frames)"
small=$(stat -c %s both/frames/particles_0005.skp) large=$(stat -c %s both/frames/particles_0005.ply)
[ $((small * 2)) -lt "$large" ] && good "less than half of the PLY ($small of $large bytes)" || bad "$small of $large bytes"
"$selkie" info both/frames/particles_0005.skp | grep -q '^particles' && good "info reads it" || bad "info"

# --- A run with compact frames alone: resumed, drawn and converted
"$selkie" run dam.json --out compact --set output.skp=true --set output.ply=false -q 2>error.txt || bad "run: $(cat error.txt)"
"$selkie" convert compact >log.txt 2>error.txt && good "converts a run" || bad "convert: $(cat error.txt)"
grep -q '11 files written' log.txt && [ "$(ls compact/frames/*.ply | wc -l)" -eq 11 ] && good "to PLY by default" || bad "$(cat log.txt)"
"$selkie" convert compact | grep -q '0 files written, 11 were there' && good "keeps what is there" || bad "second time"
"$selkie" convert compact --to vtp --out vtk --up z -q && [ "$(ls vtk/*.vtp | wc -l)" -eq 11 ] && good "to VTK elsewhere" || bad "vtp"
cmp -s both/frames/particles_0005.skp compact/frames/particles_0005.skp && good "the same bytes in both runs" || bad "bytes differ"
count() { "$selkie" info "$1" | sed -n 's/^particles *//p'; }
[ "$(count compact/frames/particles_0005.ply)" = "$(count both/frames/particles_0005.ply)" ] && good "all particles" || bad "count"

# --- One file; there and back again changes nothing more
"$selkie" convert both/frames/particles_0005.skp --out one.ply -q && "$selkie" convert one.ply --out two.skp -q &&
    "$selkie" convert two.skp --out three.ply -q && "$selkie" convert three.ply --out four.skp -q &&
    cmp -s two.skp four.skp && good "twice is once" || bad "there and back"

# --- Errors
fails() { # fails EXPECTED_TEXT ARGUMENTS...
    text=$1
    shift
    code=0
    "$selkie" "$@" >/dev/null 2>error.txt || code=$?
    [ "$code" -eq 2 ] && [ "$(wc -l <error.txt)" -eq 1 ] && grep -q -e "$text" error.txt && good "refuses: $*" ||
        bad "$*: exit code $code, $(cat error.txt)"
}
head -c 200 both/frames/particles_0005.skp >short.skp
echo nonsense >bad.skp
fails 'short.skp: truncated' convert short.skp
fails 'bad.skp: not a compact' convert bad.skp
fails 'no such file' convert nowhere
fails 'this format already' convert one.ply
fails 'scene.json' convert both/frames
fails 'xyz' convert both --to xyz
finish
