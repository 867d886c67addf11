# Bad input: one clear line, exit code 2, nothing lost.
. "$(dirname "$0")/common.sh"
write_dam dam.json

# --- Usage
expect "no command" 2 "selkie --help"
expect "unknown command" 2 "did you mean 'render'" rendr
expect "option before the command" 2 "selkie --help" --frobnicate
expect "run without a scene" 2 "needs a SCENE" run
expect "check without a scene" 2 "check --help" check
expect "unknown option" 2 "did you mean --threads" run dam.json --theads 2
expect "option without its value" 2 "--out needs a value" run dam.json --out
expect "flag with a value" 2 "takes no value" run dam.json --resume=yes
expect "threads that are no number" 2 "whole number" run dam.json --threads two
expect "no threads" 2 "whole number" run dam.json --threads 0
expect "an end that is no number" 2 "not a number" run dam.json --end soon
expect "an option twice" 2 "twice" run dam.json --end 1 --end 2
expect "an unknown letter" 2 "unknown option -x" run dam.json -qx
expect "two operands" 2 "takes no argument 'b'" check dam.json b
expect "end and frames" 2 "give one" run dam.json --end 1 --frames 3
expect "resume and force" 2 "give one" run dam.json --resume --force

# --- Two bodies in one place: 'check' refuses what 'run' refuses
cat >places.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "resolution": 32}, "time": {"end": 0.1},
 "materials": [{"name": "water"}, {"name": "rubber", "kind": "soft", "density": 500}],
 "liquids": [{"material": "water", "shape": {"type": "box", "min": [0, 0], "max": [1, 0.4]}}],
 "bodies": [{"material": "rubber", "shape": {"type": "box", "min": [0.3, 0.5], "max": [0.5, 0.7]}},
            {"material": "rubber", "shape": {"type": "box", "min": [0.45, 0.5], "max": [0.7, 0.7]}}]}
SCENE
for command in check run; do
    expect "$command: bodies of particles that overlap" 2 'bodies\[1\].shape: overlaps bodies\[0\]' $command places.json
done
if "$selkie" doctor | grep -q '^ode *there'; then
    boxes='[{"shape": {"type": "box", "min": [0.3, 0.5], "max": [0.5, 0.7]}}, {"shape": {"type": "box", "min": [0.3, 0.5], "max": [0.5, 0.7]}}]'
    for command in check run; do
        expect "$command: two bodies in one place" 2 'bodies\[1\].shape: lies within bodies\[0\]' \
            $command places.json --set "bodies=$boxes"
    done
    expect "a body around another" 2 'bodies\[1\].shape: contains bodies\[0\]' check places.json \
        --set "bodies[1]={\"shape\": {\"type\": \"sphere\", \"center\": [0.4, 0.6], \"radius\": 0.2}}"
fi

# --- Scene files
expect "missing file" 2 "nowhere.json: no such file" run nowhere.json
expect "an empty name" 2 "SCENE is empty" check ""
expect "misspelt name of a scene" 2 "did you mean 'dam_break_3d'" run dam_brake_3d
expect "a folder" 2 "is a folder" check .
if [ "$(id -u)" -ne 0 ]; then
    cp dam.json locked.json && chmod 000 locked.json
    expect "unreadable file" 2 "locked.json" check locked.json
fi
: >empty.json
expect "empty file" 2 "empty.json" check empty.json
printf '{"domain": {"size": [1, 1],}\n "time": 3' >cut.json
expect "malformed JSON" 2 "cut.json:[0-9]+" check cut.json
head -c 4000 /dev/urandom >noise.json
expect "noise" 2 "noise.json" check noise.json
sed 's/"step"/"stpe"/' dam.json >key.json
expect "unknown key" 2 'key.json:5:[0-9]+: .*did you mean "step"' check key.json
sed 's/"end": 0.5/"end": "soon"/' dam.json >type.json
expect "wrong type" 2 "type.json:5:[0-9]+: time.end" check type.json
sed 's/"size": \[1, 0.75\]/"size": [-1, 0.75]/' dam.json >negative.json
expect "negative size" 2 "negative.json:4:[0-9]+: domain.size" check negative.json
expect "unknown key in --set" 2 'did you mean "transfer"' check dam.json --set transfr=flip
expect "bad value in --set" 2 'flip' check dam.json --set method=flap
expect "a density of nothing" 2 'liquids\[0\].density=1e-30: 1e-30 is out of range: must be at least 0.001 kg/m3' \
    check dam.json --set 'liquids[0].density=1e-30'
expect "steps without end" 2 'time.step.*1e-300 s makes 5e\+299 steps until 0.5 s: at most 1e\+10' check dam.json --set time.step=1e-300
expect "cells of nothing" 2 'domain.size.*at least 1e-09 m' check dam.json --set 'domain.size=[1e-300,1e-300]'
expect "method against discretization" 2 'method=sph: contradicts --set discretization=grid' \
    check dam.json --set method=sph --set discretization=grid
expect "discretization against method" 2 'method=sph: contradicts --set discretization=grid' \
    run dam.json --set discretization=grid --set method=sph --out never
expect "method against transfer" 2 'contradicts --set transfer=apic' check dam.json --set transfer=apic --set method=flip
check "method that agrees with transfer" "$selkie" check dam.json --set 'transfer="flip"' --set method=flip --set discretization=grid
expect "end and --set time.end" 2 "give one" check dam.json --end 1 --set time.end=2
expect "backend and --set backend" 2 "give one" check dam.json --backend plain --set backend=tuned
expect "check with a backend that is none" 2 "tuned, plain" check dam.json --backend plian
check "check with a backend" "$selkie" check dam.json --backend plain
if ! "$selkie" doctor | grep -q '^gpu .*driver'; then
    expect "check for a GPU that is not here" 2 'backend: "cuda" .*use "tuned"' check dam.json --backend cuda
fi
expect "--set without a value" 2 'time.end' check dam.json --set time.end
expect "an end before the start" 2 'time.end|--end' check dam.json --end -1

# --- Geometry
sed 's/"min": \[0, 0\], "max": \[0.35, 0.5\]/"min": [5, 5], "max": [6, 6]/' dam.json >outside.json
expect "liquid outside the domain" 2 "liquids\[0\]" run outside.json --out never
sed 's/"center": \[0.7, 0.1\], "radius": 0.1/"center": [0.2, 0.2], "radius": 0.7/' dam.json >inside.json
expect "liquid inside an obstacle" 2 "liquids\[0\]" run inside.json --out never
sed 's/"type": "sphere".*}}/"type": "mesh", "file": "thing.obj"}}/' dam.json >mesh.json
expect "missing mesh" 2 "thing.obj" run mesh.json --out never
cat >changes.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "resolution": 16},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}}],
 "changes": [{"step": 3, "type": "obstacle", "obstacle": {"name": "ball", "shape": {"type": "sphere", "center": [0.7, 0.3], "radius": 0.1}}},
             {"step": 5, "type": "move", "name": "bell", "duration": 1}]}
SCENE
expect "a name in changes that nothing has" 2 'changes\[1\].name: no obstacle .*"bell"' check changes.json
expect "a missing mesh in changes" 2 "thing.obj" check changes.json --set 'changes[1].name=ball' \
    --set 'changes[0].obstacle.shape={"type": "mesh", "file": "thing.obj"}'
echo "this is no mesh" >thing.obj
expect "a mesh that is none" 2 "thing.obj" run mesh.json --out never
cat >thing.obj <<'MESH'
v 0.6 0.0 -0.1
v 0.8 0.0 -0.1
v 0.7 0.2 -0.1
v 0.7 0.1 0.2
f 1 3 2
f 1 2 4
f 2 3 4
MESH
expect "a mesh with a hole" 2 "thing.obj.*(closed|open|hole)" run mesh.json --out never
expect "the same, checked" 2 "thing.obj.*(closed|open|hole)" check mesh.json
echo "f 3 1 4" >>thing.obj
check "closed, it is fine" "$selkie" check mesh.json

# Two layers of the same triangles are closed and have no inside.
sed 's/"dimension": 2, "size": \[1, 0.75\]/"dimension": 3, "size": [1, 1, 1]/; s/\[0.2, 0\]/[0.2, 0, 0]/; s/\[0.35, 0.5\]/[0.35, 0.5, 1]/;
     s/"min": \[0, 0\]/"min": [0, 0, 0]/' mesh.json >mesh_3d.json
printf 'v 0.2 0.2 0.2\nv 0.8 0.2 0.2\nv 0.8 0.2 0.8\nf 1 2 3\nf 1 3 2\n' >thing.obj
expect "a closed mesh that is flat" 2 "obstacles\[0\].shape.file: .*thing.obj: is closed but flat" check mesh_3d.json
printf 'v 0 0 0\nv 1e28 0 0\nv 0 1e28 0\nv 0 0 1e28\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n' >thing.obj
expect "a mesh out of all measure" 2 "thing.obj: no memory .*e\+[0-9]+ GiB more" check mesh_3d.json
printf 'ply\nformat ascii 1.0\nelement vertex 9999999999\nproperty float x\nproperty float y\nproperty float z\n' >thing.ply
printf 'element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n' >>thing.ply
expect "a mesh that announces too much" 2 "^selkie: thing.ply: .*announces more points or faces" info thing.ply

# --- Memory: told before it is tried
sed 's/"dimension": 2, "size": \[1, 0.75\]/"dimension": 3, "size": [1, 1, 1]/; s/"max": \[0.35, 0.5\]/"max": [1, 1, 0.9]/;
     s/"min": \[0, 0\]/"min": [0, 0, 0]/; /"obstacles"/d; /"probes"/d' dam.json >huge.json
check "the scene itself is fine" "$selkie" check huge.json
expect "a resolution that does not fit" 2 "need about .* GiB; .* GiB are there" run huge.json --set domain.resolution=2000 --out never
expect "one that is out of all measure" 2 "(GiB|at most)" run huge.json --set domain.resolution=60000 --out never
[ ! -e never ] && good "a refused run makes no folder" || bad "a refused run left a folder"

# --- Folders
mkdir full && echo mine >full/notes.txt
expect "a folder with something in it" 2 "not empty.*--resume.*--force" run dam.json --out full
[ "$(cat full/notes.txt)" = mine ] && good "it is left alone" || bad "it was changed"
mkdir full/frames && echo mine >full/frames/holiday.ply
expect "force where no run was" 2 "no scene.json" run dam.json --out full --force
[ "$(cat full/frames/holiday.ply)" = mine ] && good "it is left alone" || bad "it was changed"
echo file >afile
expect "a file as the folder" 2 "afile" run dam.json --out afile
expect "a folder that cannot be made" 2 "/proc/nowhere" run dam.json --out /proc/nowhere/out
expect "the reason of a folder that cannot be made" 2 "/sys/never.*(no permission|read-only)" run dam.json --out /sys/never
if unshare -rm sh -c 'mkdir -p sealed && mount -t tmpfs -o ro none sealed' 2>/dev/null; then
    unshare -rm sh -c 'mount -t tmpfs -o ro none sealed && "$0" run dam.json --out sealed' "$selkie" >/dev/null 2>.error
    grep -q '^selkie: sealed: the folder cannot be written to: the file system is read-only$' .error &&
        good "a folder on a read-only disk" || bad "a folder on a read-only disk: $(cat .error)"
fi
expect "nothing to resume" 2 "no run to resume" run --resume --out nothing

# --- A run that fails must not cost the one that was there
check "a run" "$selkie" run dam.json --out kept --quiet --frames 2
expect "force with a scene that is bad" 2 "liquids\[0\]" run outside.json --out kept --force
[ -s kept/frames/particles_0002.ply ] && [ -s kept/finished ] && good "the run is still there" || bad "the run was lost"
expect "resume with another backend" 2 "^selkie: --backend changes backend" run --resume --out kept --backend plain
expect "a run that exists" 2 "not empty" run dam.json --out kept

# --- Full disk: a limit on the size of files does the same to a program
(ulimit -f 40 && "$selkie" run huge.json --set domain.resolution=24 --frames 3 --out limited --quiet) 2>.error
code=$?
if [ $code -eq 2 ] && grep -q '^selkie: .*limited/' .error && ! ls limited/frames/*.part >/dev/null 2>&1; then
    good "no space for a frame: $(head -1 .error | cut -c9-)"
else
    bad "no space for a frame: exit code $code: $(cat .error)"
fi

# --- A simulation that fails
"$selkie" run dam.json --out failed --quiet --set pressure.max_iterations=1 --set pressure.tolerance=1e-12 2>.error
code=$?
if [ $code -eq 3 ] && head -1 .error | grep -q '^selkie: step 1 .*pressure.max_iterations' && grep -q 'selkie: try' .error; then
    good "a solve that does not converge: $(head -1 .error | cut -c9-)"
else
    bad "a solve that does not converge: exit code $code: $(cat .error)"
fi

# --- Tables of motions and flows: the key, the file, the value, and what would be right
cat >moved.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "resolution": 16}, "time": {"end": 0.1},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [1, 0.3]}}],
 "obstacles": [{"shape": {"type": "box", "min": [0.4, 0], "max": [0.5, 0.5]}, "motion_file": "motion.csv"}]}
SCENE
key='obstacles\[0\].motion_file: motion.csv:'
expect "a motion file that is missing" 2 "$key cannot be opened" check moved.json
printf 'time,x\n0,0\n1,0.1\n0.5,0.2\n' >motion.csv
expect "times that go back" 2 "$key row 3: the time 0.5 s must be after the one before, 1 s" check moved.json
expect "times that go back, in a run" 2 "$key row 3: the time 0.5 s" run moved.json --out moved
printf 'time,q\n0,0\n' >motion.csv
expect "a column that is none" 2 "$key the columns are time, q: they must be time and some of x" check moved.json
printf 'time,x\n0,0\n1,far\n' >motion.csv
expect "a word for a number" 2 "$key line 3: \"far\" in the column \"x\" must be a finite number" check moved.json
printf 'time,x\n0,0\n1\n' >motion.csv
expect "a short line" 2 "$key line 3: \"1\": a line must have 2 numbers" check moved.json
printf 'time,x\n' >motion.csv
expect "a motion file without rows" 2 "$key has no numbers" check moved.json
printf 'time,x\n0,0\n1,0.1\n' >motion.csv
expect "a flow file that is missing" 2 "liquids\[0\].flow.file: flow.csv: cannot be opened" check moved.json \
    --set 'liquids[0].flow={"type": "file", "file": "flow.csv"}'

# --- The other commands
expect "plot of nothing" 2 "no such folder" plot nowhere
expect "plot of a folder without a run" 2 "stats.csv" plot full
expect "plot of a column that is not there" 2 "did you mean 'volume_ratio'" plot kept --columns volume_rato
expect "plot where it cannot be written" 2 "/proc/x" plot kept --out /proc/x
expect "info of nothing" 2 "no such file" info nowhere.ply
expect "info of something unknown" 2 "of an unknown kind" info afile
expect "info of a folder without a run" 2 "scene.json" info full
echo "ply" >short.ply
expect "info of a particle file that is cut" 2 "short.ply" info short.ply
cp kept/checkpoints/*.selkie damaged.selkie && printf 'XXXX' | dd of=damaged.selkie bs=1 seek=200 conv=notrunc 2>/dev/null
expect "info of a damaged checkpoint" 2 "damaged.selkie.*damaged" info damaged.selkie
expect "render of nothing" 2 "nowhere" render nowhere
expect "render of a folder without a run" 2 "full" render full
expect "render with a style that is none" 2 "surface, particles" render kept --style shiny
expect "render of frames that are none" 2 "A:B|frames" render kept --frames x:y
finish
