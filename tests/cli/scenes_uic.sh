# The scenes of scenes/uic, small, for a few frames: as they are and as their bilateral twins. None may stop with an error,
# and none but those with open sides may lose a particle.
. "$(dirname "$0")/common.sh"

# scene RESOLUTION FRAMES OPEN [KEY=VALUE...]
try() {
    scene=$1
    resolution=$2
    frames=$3
    open=$4
    shift 4
    sets=""
    for set in "$@"; do
        sets="$sets --set $set"
    done
    for kind in unilateral bilateral; do
        # shellcheck disable=SC2086
        check "$scene: $kind" "$selkie" run "$source/scenes/uic/$scene.json" --out "$scene.$kind" --quiet \
            --set domain.resolution="$resolution" --set particles.per_cell=8 --set incompressibility=$kind --frames "$frames" \
            --set output.ply=false $sets
        awk -F, -v open="$open" '
            NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
            NR == 2 { first = $column["particles"] - $column["emitted"] + $column["drained"] }
            { last = $column["particles"] - $column["emitted"] + $column["drained"]; drained = $column["drained"]; rows++ }
            END { exit !(rows > 0 && last == first && (open || drained == 0)) }' "$scene.$kind/stats.csv" &&
            good "$scene: $kind loses nothing" || bad "$scene: $kind loses particles"
    done
}

try city_flood 50 4 1
try fountains 50 8 1
try dam_obstacle 24 5 0
try quad_dam 24 5 0
try streams 30 8 0
try drops_in_pool 52 5 0
try terrain_dam 52 5 0
try explosions 24 5 0 'forces[0].time=0.05'
finish
