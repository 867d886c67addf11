# A mesh for each material, made by the run and afterwards.
. "$(dirname "$0")/common.sh"
cat >two.json <<'SCENE'
{"domain": {"size": [0.4, 0.4, 0.4], "cell_size": 0.025}, "time": {"end": 0.07, "fps": 30},
 "materials": [{"name": "water"}, {"name": "soft wax", "kind": "soft", "density": 500},
               {"name": "soft_wax", "density": 1000}],
 "liquids": [{"material": "water", "shape": {"type": "box", "min": [0, 0, 0], "max": [0.4, 0.15, 0.4]}},
             {"material": "soft_wax", "shape": {"type": "box", "min": [0, 0.3, 0], "max": [0.1, 0.35, 0.1]}}],
 "bodies": [{"material": "soft wax", "shape": {"type": "box", "min": [0.1, 0.2, 0.1], "max": [0.3, 0.3, 0.3]}}]}
SCENE
"$selkie" run two.json --out run --set output.surface=ply --set mesh.by_material=true -q 2>error.txt ||
    bad "run: $(cat error.txt)"
[ "$(ls run/surfaces/water/*.ply run/surfaces/soft_wax/*.ply | wc -l)" -eq 6 ] && good "a folder for each material" ||
    bad "folders: $(find run/surfaces)"

[ "$(ls run/surfaces/soft_wax_2/*.ply | wc -l)" -eq 3 ] && good "folders of two names that become one" ||
    bad "folders: $(find run/surfaces)"

# --- A box of wax alone has its volume: 0.2 x 0.1 x 0.2 m
"$selkie" info run/surfaces/soft_wax/surface_0001.ply >info.txt
grep -q '^closed *yes' info.txt && good "the wax is closed" || bad "open: $(cat info.txt)"
cp run/surfaces/soft_wax/surface_0001.ply kept.ply
"$selkie" mesh run --by-material --out again -q && cmp -s kept.ply again/soft_wax/surface_0001.ply &&
    good "the same mesh afterwards" || bad "another mesh: $(find again)"
"$selkie" mesh run --by-material --to usd --attributes --out usd -q && [ -s usd/water/surface.usda ] &&
    grep -q 'primvars:material' usd/soft_wax/surface_0001.usda && good "attributes in USD, a stage each" || bad "usd: $(find usd)"
"$selkie" mesh run --no-by-material --out whole -q && [ "$(ls whole/*.ply | wc -l)" -eq 3 ] && [ ! -d whole/water ] &&
    good "one mesh of all against the scene's key" || bad "whole: $(find whole)"
"$selkie" mesh run --by-material --no-by-material --out both -q 2>error.txt && bad "both options pass" ||
    { grep -q 'exclude each other' error.txt && good "both options are refused"; } || bad "$(cat error.txt)"
finish
