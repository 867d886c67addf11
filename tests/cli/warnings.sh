# What `selkie check` warns of: it says what is wrong and what would be right, and the exit code stays 0.
. "$(dirname "$0")/common.sh"
cat >good.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "resolution": 32}, "time": {"end": 0.1, "fps": 10},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.35, 0.5]}}],
 "obstacles": [{"shape": {"type": "box", "min": [0.7, 0.1], "max": [0.9, 0.6]}}],
 "sources": [{"shape": {"type": "sphere", "center": [0.5, 0.9], "radius": 0.05}, "velocity": [0, -1]}]}
SCENE

# warns WHAT PATTERN ARGUMENTS...: one warning with the pattern in it, and success.
warns() {
    what=$1
    pattern=$2
    shift 2
    "$selkie" "$@" >.output 2>.error
    code=$?
    if [ $code -eq 0 ] && [ "$(wc -l <.error)" -eq 1 ] && grep -Eq "^selkie: warning: $pattern" .error; then
        good "$what: $(cut -c18- .error | cut -c-140)"
    else
        bad "$what: exit code $code"
        sed 's/^/      | /' .error
    fi
}

"$selkie" check good.json >.output 2>.error && [ ! -s .error ] && grep -qx good .output && good "a good scene" ||
    bad "a good scene: $(cat .error)"
warns "a thin obstacle" 'obstacles\[0\].shape: is about 0.01 m thick, thinner than a cell of 0.0312 m.*cells of 0.01 m' \
    check good.json --set 'obstacles[0].shape.max=[0.71, 0.6]'
warns "a thin one in a union" 'obstacles\[0\].shape: is about 0.02 m thick' check good.json --set \
    'obstacles[0].shape={"type": "union", "shapes": [{"type": "sphere", "center": [0.8, 0.3], "radius": 0.1}, {"type": "sphere", "center": [0.8, 0.6], "radius": 0.01}]}'
warns "a source in an obstacle" 'sources\[0\].shape: 100 % of it lies inside obstacles' \
    check good.json --set 'sources[0].shape.center=[0.8, 0.3]'
warns "a source outside" 'sources\[0\].shape: 8[0-9] % of it lies outside the domain' \
    check good.json --set 'sources[0].shape={"type": "box", "min": [-0.5, 0.8], "max": [0.1, 0.9]}'
warns "a step that is far too long" 'time.step: 0.1 s is far too long: .*use at most 0.0[0-9]+ s' \
    check good.json --set time.step=0.1 --set domain.resolution=64
warns "a least step that is far too long" 'time.min_step: 0.1 s is far too long' \
    check good.json --set time.min_step=0.1 --set time.max_step=0.1 --set domain.resolution=64
warns "a CFL number out of all measure" 'time.cfl: 50 .*use at most 6' check good.json --set time.cfl=50
warns "a CFL number too large for SPH" 'time.cfl: 1 is too much for discretization sph' \
    check good.json --set discretization=sph --set time.cfl=1
warns "no frame" 'time.fps: 0.5 makes no frame until 0.1 s.*use at least 10' check good.json --set time.fps=0.5
warns "run says it too" 'obstacles\[0\].shape: is about 0.01 m thick' \
    run good.json --quiet --frames 1 --out thin --set 'obstacles[0].shape.max=[0.71, 0.6]'

# A cup of thin walls is a mesh whose bounds are wide.
cat >cup.json <<'SCENE'
{"domain": {"size": [1, 1, 1], "resolution": 16}, "time": {"end": 0.1, "fps": 10},
 "liquids": [{"shape": {"type": "box", "min": [0.4, 0.6, 0.4], "max": [0.6, 0.9, 0.6]}}],
 "obstacles": [{"shape": {"type": "mesh", "file": "plate.obj"}}]}
SCENE
cat >plate.obj <<'MESH'
v 0.2 0.30 0.2
v 0.8 0.30 0.2
v 0.8 0.30 0.8
v 0.2 0.30 0.8
v 0.2 0.32 0.2
v 0.8 0.32 0.2
v 0.8 0.32 0.8
v 0.2 0.32 0.8
f 1 2 3 4
f 8 7 6 5
f 1 5 6 2
f 2 6 7 3
f 3 7 8 4
f 4 8 5 1
MESH
if "$selkie" doctor | grep -q '^assimp *there'; then
    warns "a thin mesh" 'obstacles\[0\].shape: is about 0.0[12][0-9]* m thick, thinner than a cell' check cup.json
fi

# --- Bodies that start where they cannot be
cat >bodies.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "cell_size": 0.05}, "time": {"end": 0.1},
 "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [1, 0.4]}}],
 "obstacles": [{"shape": {"type": "box", "min": [0.7, 0], "max": [0.8, 0.6]}}],
 "bodies": [{"shape": {"type": "sphere", "center": [0.3, 0.4], "radius": 0.1}},
            {"shape": {"type": "sphere", "center": [0.35, 0.4], "radius": 0.1}},
            {"shape": {"type": "sphere", "center": [0.75, 0.3], "radius": 0.1}},
            {"shape": {"type": "sphere", "center": [0.5, 1.0], "radius": 0.08}},
            {"shape": {"type": "sphere", "center": [0.1, 0.6], "radius": 0.02}}]}
SCENE
"$selkie" check bodies.json >/dev/null 2>bodies.txt
for words in 'bodies\[1\].shape: overlaps bodies\[0\]' 'bodies\[2\].shape: lies in obstacles\[0\]' \
    'bodies\[3\].shape: reaches through a wall' 'bodies\[4\].shape: is about 0.04 m thick'; do
    grep -q "$words" bodies.txt && good "warns: $words" || bad "no warning: $words"
done
[ "$(grep -c 'bodies\[' bodies.txt)" -eq 4 ] && good "and of nothing else" || bad "warnings: $(cat bodies.txt)"

# Joined sides: a floor must end as it begins, and an open side is not open.
cat >seam.json <<'SCENE'
{"domain": {"dimension": 2, "size": [1, 1], "resolution": 32, "periodic": "x"}, "time": {"end": 0.1, "fps": 10},
 "liquids": [{"shape": {"type": "box", "min": [0, 0.4], "max": [1, 0.6]}}],
 "obstacles": [{"shape": {"type": "polygon", "points": [{"at": [-1, -1]}, {"at": [2, -1]}, {"at": [2, 0.2]}, {"at": [-1, 0.2]}]}},
               {"shape": {"type": "sphere", "center": [0, 0.5], "radius": 0.1}}]}
SCENE
"$selkie" check seam.json >.output 2>.error && [ ! -s .error ] && grep -qx good .output &&
    good "a level floor and a ball across the seam" || bad "a level floor across the seam: $(cat .error)"
warns "an uneven floor across the seam" 'obstacles\[0\].shape: differs at x_min and x_max over 20 % of the side' \
    check seam.json --set 'obstacles[0].shape.points=[{"at": [-1, -1]}, {"at": [2, -1]}, {"at": [2, 0.5]}, {"at": [-1, -0.1]}]'
"$selkie" check seam.json --set domain.walls.x_max=open >.output 2>.error &&
    grep -q 'domain.walls.x_max: "open" has no effect: domain.periodic joins that side' .output &&
    good "a note on an open side that is joined" || bad "no note on an open side: $(cat .output .error)"
"$selkie" check seam.json --set 'forces=[{"type": "sponge", "side": "x_max", "width": 0.2}]' >.output 2>.error &&
    grep -q 'forces\[0\].side: domain.periodic joins "x_max"' .output &&
    good "a note on a sponge at a joined side" || bad "no note on a sponge: $(cat .output .error)"
"$selkie" check seam.json --set 'reduced.dye=[{"shape": {"type": "sphere", "center": [0.5, 0.5], "radius": 0.1}}]' \
    >.output 2>.error && grep -q 'reduced.dye: has an effect with discretization reduced only' .output &&
    good "a note on dye in a liquid of the grid" || bad "no note on dye: $(cat .output .error)"

finish
