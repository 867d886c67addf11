# What a run leaves in its folder, and what the other commands make of it.
. "$(dirname "$0")/common.sh"
write_dam dam.json

"$selkie" run dam.json >log.txt 2>error.txt || bad "run: $(cat error.txt)"
[ ! -s error.txt ] && good "a good run says nothing on stderr" || bad "stderr: $(cat error.txt)"
[ -d out/dam ] && good "the folder is out/NAME" || bad "no out/dam"
grep -q '32 x 24 cells' log.txt && grep -q 'MiB of memory' log.txt && good "says cells and memory before it starts" ||
    bad "plan: $(head -3 log.txt)"
[ "$(grep -c '^frame ' log.txt)" -eq 10 ] && good "a line a frame where there is no terminal" || bad "log: $(cat log.txt)"
grep -q 'selkie render out/dam' log.txt && good "ends with what to do next" || bad "no summary"

# --- Tables
header="step,time,dt,particles,volume_ratio,volume_eq19,occupied_ratio,kinetic_energy,potential_energy,max_speed"
header="$header,pressure_iterations,pressure_residual,step_ms,liquid_cells,blocks,emitted,drained,"
head -1 out/dam/stats.csv | grep -q "^$header" && good "columns of stats.csv" || bad "stats.csv: $(head -1 out/dam/stats.csv)"
head -1 out/dam/stats.csv | grep -Eq ',pressure_ms(,|$)' && good "a column a phase" || bad "no pressure_ms"
[ "$(wc -l <out/dam/stats.csv)" -eq 201 ] && good "a row a step" || bad "rows: $(wc -l <out/dam/stats.csv)"
awk -F, 'NR == 1 { n = NF } NF != n { bad = 1 } NR > 1 && $1 != NR - 1 { bad = 1 } END { exit bad }' out/dam/stats.csv &&
    good "rows are whole and in order" || bad "rows of stats.csv"
tail -1 out/dam/stats.csv | grep -q '^200,0.5,' && good "ends at the end" || bad "ends with $(tail -1 out/dam/stats.csv)"
awk -F, 'NR > 1 && ($5 < 0.7 || $5 > 1.3 || $4 < 500) { bad = 1 } END { exit bad }' out/dam/stats.csv &&
    good "volumes and particles are sensible" || bad "volumes"
[ "$(head -1 out/dam/probes.csv)" = "step,time,level,front" ] && good "columns of probes.csv" ||
    bad "probes.csv: $(head -1 out/dam/probes.csv)"
awk -F, 'NR == 2 { first = $4 } END { exit !($4 > first && $4 <= 1.0001 && NR == 201) }' out/dam/probes.csv &&
    good "the front runs" || bad "front"

# --- The table of statistics drives progress, info and plots: none of them names a column of its own
for name in $("$selkie" schema --statistics | sed -n 's/^| `\([a-z0-9_]*\)` .*/\1/p'); do
    case $name in step | time) continue ;; esac # what every table has
    (cd "$source/tools/selkie" && grep -nE "\"$name[\"+]|(s|statistics)->$name\\b" plot.c info.c progress.c run.c) &&
        bad "the command names the statistic $name itself"
done
good "the command takes statistics from their table"

# --- Frames
[ "$(ls out/dam/frames | wc -l)" -eq 11 ] && [ -s out/dam/frames/particles_0000.ply ] && [ -s out/dam/frames/particles_0010.ply ] &&
    good "frames 0 to 10" || bad "frames: $(ls out/dam/frames)"
head -c 400 out/dam/frames/particles_0003.ply | grep -aq '^format binary_little_endian' && good "binary PLY" || bad "not a PLY"
"$selkie" info out/dam/frames/particles_0003.ply >info.txt && grep -q '^particles ' info.txt && grep -q '^bounds ' info.txt &&
    good "info of particles" || bad "info: $(cat info.txt)"
check "with everything on" "$selkie" run dam.json --out more --quiet --end 0.2 --set output.vtp=true --set output.every=2
[ "$(ls more/frames | tr '\n' ' ')" = "particles_0000.ply particles_0000.vtp particles_0002.ply particles_0002.vtp particles_0004.ply particles_0004.vtp " ] &&
    good "every second frame in both formats" || bad "frames: $(ls more/frames)"
"$selkie" info more/frames/particles_0002.vtp | grep -q '^bounds ' && good "info of a .vtp" || bad "info of a .vtp"
cmp -s more/frames/particles_0004.ply out/dam/frames/particles_0004.ply && good "what is written does not change the run" ||
    bad "frame 4 differs"

# --- The recorded scene
check "scene.json is valid" "$selkie" check out/dam/scene.json
check "and can be run" "$selkie" run out/dam/scene.json --out again --quiet
check "to the same bits" same_run out/dam again
if command -v python3 >/dev/null; then
    check "scene.json is plain JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))["pressure"]["tolerance"]' out/dam/scene.json
    "$selkie" schema >schema.json
    check "the schema is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))["properties"]["domain"]' schema.json
    check "the published schema is this one" cmp schema.json "$source/docs/scene.schema.json"
fi

# --- Surfaces, 3D
cat >drop.json <<'SCENE'
{"title": "A drop", "domain": {"size": [1, 1, 1], "resolution": 16}, "time": {"end": 0.1, "fps": 20},
 "liquids": [{"shape": {"type": "sphere", "center": [0.5, 0.6, 0.5], "radius": 0.25}},
             {"shape": {"type": "box", "min": [0, 0, 0], "max": [1, 0.2, 1]}}]}
SCENE
check "surfaces as PLY" "$selkie" run drop.json --out drop --quiet --set output.surface=ply
"$selkie" info drop/surfaces/surface_0002.ply >info.txt && grep -q '^closed  *yes' info.txt && good "a closed surface" ||
    bad "surface: $(cat info.txt)"
check "surfaces as OBJ" "$selkie" run drop.json --out drop --force --quiet --frames 1 --set output.surface=obj --set output.ply=false
[ -s drop/surfaces/surface_0001.obj ] && [ ! -e drop/surfaces/surface_0002.ply ] && [ ! -e drop/frames ] &&
    good "and nothing else" || bad "$(ls -R drop)"

# The surface of a frame without liquid is an empty mesh.
check "a drop that drains" "$selkie" run drop.json --out drained --quiet --set output.surface=ply \
    --set 'drains=[{"shape": {"type": "box", "min": [0, 0, 0], "max": [1, 1, 1]}, "start": 0.07}]'
"$selkie" info drained/surfaces/surface_0002.ply >info.txt && grep -q 'mesh$' info.txt &&
    grep -q '^triangles  *0, of 0 points' info.txt && good "info of an empty surface" || bad "empty surface: $(cat info.txt)"

# --- Threads: -j 1 is one, with frames that are written
"$selkie" run dam.json --out single --quiet -j 1 --set domain.resolution=128 &
most=0
while kill -0 $! 2>/dev/null; do
    threads=$(sed -n 's/^Threads:[^0-9]*//p' /proc/$!/status 2>/dev/null)
    [ "${threads:-0}" -gt $most ] && most=$threads
    sleep 0.02
done
[ $most -eq 1 ] && good "-j 1 is one thread" || bad "-j 1: $most threads"

# --- Checkpoints, info, plots
[ "$(ls out/dam/checkpoints)" = checkpoint_00000200.selkie ] && good "a checkpoint at the end" || bad "$(ls out/dam/checkpoints)"
"$selkie" info out/dam/checkpoints/*.selkie >info.txt && grep -Eq '^step +200' info.txt && good "info of a checkpoint" ||
    bad "info: $(cat info.txt)"
"$selkie" info out/dam >info.txt && grep -q 'a run, finished' info.txt && grep -q 'step 200, 0.5 s' info.txt &&
    good "info of a run" || bad "info: $(cat info.txt)"
"$selkie" info dam.json | grep -q 'A small dam' && good "info of a scene" || bad "info of a scene"
"$selkie" doctor >doctor.txt
if grep -q '^cairo *there' doctor.txt; then
    check "plot of one run" "$selkie" plot out/dam
    check "plot of two" "$selkie" plot out/dam more --out both
    check "plot of some columns" "$selkie" plot out/dam more --out some --columns volume_ratio,front
    for file in out/dam/plots both some; do
        head -c 4 "$file.png" | grep -aq PNG && head -c 200 "$file.svg" | grep -q '<svg' && good "$file.png and .svg" ||
            bad "$file.png or .svg"
    done
else
    expect "plot without cairo" 2 "libcairo2-dev" plot out/dam
fi

# --- A note, once, about a step that is too long; the run goes on
cat >deep.json <<'SCENE'
{"domain": {"dimension": 2, "size": [0.5, 1], "cell_size": 0.05}, "discretization": "sph", "time": {"end": 0.6, "fps": 50, "step": 0.016, "min_step": 0.016},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.6]}}], "output": {"ply": false}}
SCENE
"$selkie" run deep.json --out deep >deep.txt 2>&1
[ $? -eq 0 ] && [ "$(grep -c 'selkie: note: time.step: 0.016 s is too long' deep.txt)" -eq 1 ] && grep -q '^done' deep.txt &&
    good "a step that is too long is noted" || bad "a step that is too long: $(grep note deep.txt)"
check "a step that time.cfl chooses" "$selkie" run deep.json --out calm --set time.step=0 --quiet
"$selkie" run deep.json --out short --set time.step=0.004 2>&1 | grep -q 'note' && bad "a note about a short step" ||
    good "no note about a short step"

# --- Warnings: at the end of a run, kept in its folder, without another exit code
cat >shrink.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 0.75], "resolution": 32}, "time": {"end": 0.1, "fps": 20}, "volume": "none",
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}, "count": 5000}], "output": {"ply": false}}
SCENE
"$selkie" run shrink.json --out shrink --quiet 2>error.txt
[ $? -eq 0 ] && grep -q '^selkie: warning: the volume of the liquid ended at 0\.[0-9]* of the start.*"volume": "idp"' error.txt &&
    good "a volume that strayed is told" || bad "a volume that strayed: $(cat error.txt)"
"$selkie" info shrink | grep -q '^warning *the volume of the liquid ended' && good "info shows it" || bad "info: $(selkie info shrink)"
"$selkie" run shrink.json -qqo silent 2>error.txt && [ ! -s error.txt ] && [ -s silent/warnings.txt ] &&
    good "-qq keeps the warnings in the folder" || bad "-qq: $(cat error.txt)"
check "with as many particles as fit" "$selkie" run shrink.json --out shrink --force --quiet --set 'liquids[0].count=0'
[ ! -e shrink/warnings.txt ] && good "and is gone after a good run" || bad "warnings.txt: $(cat shrink/warnings.txt)"
# Liquid that rises by itself: a table with energy that grows.
cp -r out/dam grows && awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
    NR > 150 { $column["kinetic_energy"] *= 1.5 } { print }' out/dam/stats.csv >grows/stats.csv && rm grows/finished
"$selkie" run --resume --out grows --end 0.55 --quiet 2>error.txt
[ $? -eq 0 ] && grep -q '^selkie: warning: energy grew by' error.txt && "$selkie" info grows | grep -q '^warning *energy grew' &&
    good "energy that grew is told" || bad "energy that grew: $(cat error.txt)"
# The same beside a body, whose own energy counts.
cat >afloat.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 0.75], "cell_size": 0.0625}, "time": {"end": 0.4},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [1, 0.25]}}],
 "bodies": [{"density": 400, "shape": {"type": "sphere", "center": [0.5, 0.5], "radius": 0.125}}]}
SCENE
"$selkie" run afloat.json --out afloat --quiet 2>error.txt
[ $? -eq 0 ] && [ ! -e afloat/warnings.txt ] && good "a body that falls is no warning" || bad "a body: $(cat error.txt)"
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
    NR > 5 { $column["body_kinetic_energy"] += 0.2 * $column["potential_energy"] } { print }' afloat/stats.csv >grown.csv &&
    mv grown.csv afloat/stats.csv && rm afloat/finished
"$selkie" run --resume --out afloat --end 0.45 --quiet 2>error.txt
[ $? -eq 0 ] && grep -q '^selkie: warning: energy grew by' error.txt && good "energy of a body that grew is told" ||
    bad "energy of a body: $(cat error.txt)"

# --- Pictures
if grep -q '^libpng *there' doctor.txt; then
    check "render" "$selkie" render out/dam --width 160 --frames 0:2 --no-film
    [ "$(ls out/dam/pictures/*.png | wc -l)" -eq 3 ] && good "three pictures" || bad "$(ls out/dam/pictures)"
    if grep -q '^ffmpeg *there' doctor.txt; then
        check "render with a film" "$selkie" render out/dam --width 160 --frames 0:3 --force
        [ -s out/dam/film.mp4 ] && good "a film" || bad "no film"
    fi
else
    expect "render without libpng" 2 "libpng-dev" render out/dam
fi
finish
