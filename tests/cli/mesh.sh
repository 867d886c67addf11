# Meshes and whitewater of a run.
. "$(dirname "$0")/common.sh"
cat >drop.json <<'SCENE'
{"domain": {"size": [0.4, 0.4, 0.4], "cell_size": 0.025}, "time": {"end": 0.2, "fps": 30},
 "liquids": [{"shape": {"type": "box", "min": [0, 0, 0], "max": [0.2, 0.3, 0.4]}}],
 "whitewater": {"speed_min": 0.2, "speed_max": 1}}
SCENE
"$selkie" run drop.json --out run --set output.surface=ply -q 2>error.txt || bad "run: $(cat error.txt)"

# --- The mesh of a frame has the bytes that the run wrote; only missing ones are made
cp run/surfaces/surface_0003.ply kept.ply
rm run/surfaces/surface_0003.ply run/surfaces/surface_0005.ply
"$selkie" mesh run | grep -q '2 meshes made, 5 were there' && good "makes the missing meshes" || bad "missing meshes"
cmp -s kept.ply run/surfaces/surface_0003.ply && good "the same mesh as the run's" || bad "another mesh"
"$selkie" mesh run --to obj --resolution 1 --frames 2:3 --out coarse -q && [ "$(ls coarse/*.obj | wc -l)" -eq 2 ] &&
    good "to OBJ, coarser, elsewhere" || bad "obj: $(ls coarse)"

# --- On a GPU: the same bytes, or one line where there is none
if "$selkie" mesh run --frames 3 --out gpu --backend cuda -q 2>error.txt; then
    cmp -s kept.ply gpu/surface_0003.ply && good "the same mesh on the GPU" || bad "another mesh on the GPU"
else
    [ $? -eq 2 ] && [ "$(wc -l <error.txt)" -eq 1 ] && grep -q '"cuda".*use "tuned"' error.txt &&
        good "says that there is no GPU" || bad "GPU: $(cat error.txt)"
fi
"$selkie" mesh run --frames 3 --out auto --backend auto -q && cmp -s kept.ply auto/surface_0003.ply &&
    good "the same mesh wherever it is made" || bad "auto"

# --- Whitewater, the same on one thread and two, and drawn
"$selkie" whitewater run -j 1 -q 2>error.txt && [ "$(ls run/frames/whitewater_*.ply | wc -l)" -eq 7 ] &&
    good "whitewater of all frames" || bad "whitewater: $(cat error.txt)"
cp run/frames/whitewater_0006.ply one.ply
"$selkie" whitewater run | grep -q 'is there for all 7 frames' && good "keeps what is complete" || bad "second time"
"$selkie" whitewater run -j 2 --force -q && cmp -s one.ply run/frames/whitewater_0006.ply &&
    good "the same on two threads" || bad "threads"
[ "$(stat -c %s one.ply)" -gt 1000 ] && good "there is some" || bad "none: $(stat -c %s one.ply) bytes"

"$selkie" render run --frames 5:6 --width 320 --preview --no-film -q 2>error.txt &&
    [ "$(stat -c %s run/pictures/frame_0006.png)" -gt 5000 ] && good "a quick picture" || bad "preview: $(cat error.txt)"

# --- Fewer triangles, still closed; attributes in USD; files of other programs are described
"$selkie" mesh run --frames 3 --decimate 0.1 --out few -q
triangles() { "$selkie" info "$1" | tr -d , | sed -n 's/^triangles *\([0-9]*\).*/\1/p'; }
all=$(triangles run/surfaces/surface_0003.ply) few=$(triangles few/surface_0003.ply)
[ "$few" -lt $((all * 3 / 4)) ] && "$selkie" info few/surface_0003.ply | grep -q '^closed *yes' &&
    good "decimated: $few of $all triangles" || bad "decimated: $few of $all: $("$selkie" info few/surface_0003.ply)"
"$selkie" mesh run --frames 3 --decimate 0.1 | grep -q '1 meshes made' && cmp -s few/surface_0003.ply \
    run/surfaces/surface_0003.ply && good "other options: made again" || bad "other options keep the old mesh"
"$selkie" mesh run -q && cmp -s kept.ply run/surfaces/surface_0003.ply && "$selkie" mesh run | grep -q '0 meshes made' &&
    good "and back" || bad "back to the scene's options"
expect "a picture of the surroundings that is missing" 2 'render.environment: cannot open' check drop.json \
    --set render.environment=none.hdr
printf 'GIF89a' >sky.gif
expect "one of another kind" 2 '--environment: .*Radiance HDR are read' render run --environment sky.gif --no-film --frames 3
printf 'P6\n1 1\n255\nabc' >dot.ppm
expect "one of a pixel" 2 '1 x 1 pixels; each side must have 2' check drop.json --set render.environment=dot.ppm
"$selkie" check examples/channel_2d --set mesh.by_material=true | grep -q 'mesh.by_material: has no effect in 2D' &&
    good "a note for meshes by material in 2D" || bad "no note for mesh.by_material"
"$selkie" check examples/channel_2d --set render.cut='x>1' | grep -q 'render.cut: has no effect in 2D' &&
    good "a cut in 2D is noted" || bad "a cut in 2D"
"$selkie" mesh run --frames 3 --to usd --attributes --out usd -q && grep -q 'float\[\] primvars:vorticity_x' \
    usd/surface_0003.usda && good "attributes in USD" || bad "USD attributes"
"$selkie" mesh run --frames 3 --to vdb --out usd -q && "$selkie" mesh run --frames 3 --to abc --out usd -q
for file in usd/surface_0003.usda usd/surface_0003.vdb usd/surface.abc; do
    "$selkie" info $file | grep -q '^size' && good "info of ${file##*.}" || bad "info of $file"
done
"$selkie" convert run/frames/particles_0003.ply --to abc -o one.abc | grep -q 'became 0 B' && bad "convert to abc: size" ||
    good "the size of an Alembic file"
"$selkie" render run --frames 3 --style lic --no-film -q 2>&1 | grep -q 'is for 2D runs' && good "lic in 3D is noted" ||
    bad "lic in 3D"

"$selkie" mesh nowhere 2>&1 | grep -q 'scene.json' && good "a missing run is named" || bad "missing run"
"$selkie" mesh run --frames x 2>&1 | grep -q 'not a range' && good "a bad range is named" || bad "range"
finish
