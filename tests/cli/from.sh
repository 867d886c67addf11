# `selkie run --from`: a checkpoint starts another scene.
. "$(dirname "$0")/common.sh"
write_dam dam.json
check "the run that it starts with" "$selkie" run dam.json --end 0.2 --quiet --out first
sed 's/"sphere", "center": \[0.7, 0.1\], "radius": 0.1/"box", "min": [0.9, 0], "max": [1, 0.3]/' dam.json >other.json

# last DIR COLUMN: a value of stats.csv.
last() {
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } { v = $c } END { print v }' "$1/stats.csv"
}

# near A B TOLERANCE: a relative one.
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !((d < 0 ? -d : d) <= t * (b < 0 ? -b : b)) }'; }

# --- Another obstacle, the same particles
check "another obstacle" "$selkie" run other.json --from first --end 0.05 --quiet --out second
[ "$(last second particles)" = "$(last first particles)" ] && good "all particles are there" || bad "$(last second particles) particles"
cat second/from.txt | grep -qx first && good "the folder says where it came from" || bad "no from.txt"
[ -e second/frames/particles_0000.ply ] && [ "$(last second time)" = 0.05 ] && good "time starts at 0" || bad "time: $(last second time)"
check "it resumes" "$selkie" run --resume --out second --end 0.1 --quiet
check "one thread" "$selkie" run other.json --from first --end 0.1 --quiet --out single --threads 1
check "the same bits, resumed or not, on any number of threads" same_run single second

# --- Another resolution: the volume is kept to a particle
for resolution in 24 48; do
    "$selkie" run dam.json --from first --set domain.resolution=$resolution --end 0.05 --out r$resolution >out.txt 2>error.txt ||
        bad "resolution $resolution: $(cat error.txt)"
    wanted=$(awk -v n="$(last first particles)" -v r=$resolution 'BEGIN { printf "%d", n * r * r / 32 / 32 + 0.5 }')
    [ "$(last r$resolution particles)" = "$wanted" ] && [ ! -s error.txt ] && grep -q 'sampled again' out.txt &&
        good "resolution $resolution: $wanted particles" || bad "resolution $resolution: $(last r$resolution particles), not $wanted; $(cat error.txt)"
done

# --- Another origin: the liquid stays where it is in the world
check "another domain" "$selkie" run other.json --from first --set domain.origin=[-0.25,0] --set domain.size=[1.5,0.75] --set domain.resolution=48 --end 0.01 --quiet --out wide
near "$(awk -F, 'NR == 2 { print $4 }' wide/probes.csv)" "$(tail -1 first/probes.csv | cut -d, -f4)" 0.1 && good "the front is where it was" ||
    bad "the front: $(head -2 wide/probes.csv), not $(tail -1 first/probes.csv)"

# --- What does not fit
"$selkie" run other.json --from first --set domain.size=[0.5,0.75] --set domain.resolution=16 --set 'obstacles[0].shape.min=[0.45,0]' \
    --set 'probes[0].at=[0.1,0]' --end 0.01 --quiet --out narrow 2>error.txt || bad "narrow: $(cat error.txt)"
grep -q 'lie outside the domain and are dropped' error.txt && good "particles outside are counted: $(head -1 error.txt)" || bad "not counted: $(cat error.txt)"
"$selkie" run other.json --from first --set 'obstacles[0].shape.min=[0,0]' --set 'obstacles[0].shape.max=[0.15,0.3]' --end 0.01 --quiet --out buried 2>error.txt
grep -q 'deep inside solids and are dropped' error.txt && good "particles in solids are counted: $(head -1 error.txt)" || bad "not counted: $(cat error.txt)"
expect "three dimensions" 2 'is a state in 2D; domain.dimension of the scene is 3' run sphere_drop_3d --from first --out bad
expect "SPH" 2 'was written with discretization "grid"; that of the scene is "sph"' run dam.json --from first --set discretization=sph --out bad
expect "no checkpoint" 2 'nothing.selkie' run dam.json --from nothing.selkie --out bad
expect "a folder without checkpoints" 2 'has no checkpoint' run dam.json --from . --out bad
expect "with --resume" 2 'give one of them' run dam.json --from first --resume --out bad
[ ! -e bad ] && good "nothing is written" || bad "a folder was made"
rm -r second/checkpoints/*
expect "without its checkpoints" 2 'started --from a checkpoint' run --resume --out second --end 0.2
finish
