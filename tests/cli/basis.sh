# `selkie basis`: made, loaded, from snapshots, and what is refused.
. "$(dirname "$0")/common.sh"

check "a basis with a drawn mode" "$selkie" basis reduced/jet_small -o jet.basis
grep -q '63 eigenfunctions in closed form, 1 further modes, 1 named flows' .output && good "it says what is in it" ||
    bad "it says: $(cat .output)"
check "a run with its snapshots" "$selkie" run reduced/jet_small -j 1 -q --end 0.1 --out jet
check "modes from the frames of a run" "$selkie" basis reduced/shear_small --set domain.size=[1,1] \
    --set domain.resolution=64 --set reduced.modes=20 --snapshots jet --modes 3 -o data.basis
grep -q 'snapshots: the basis holds' .output && good "it says how much of them they hold" || bad "it says: $(cat .output)"
check "a run with these modes" "$selkie" run reduced/shear_small -j 1 -q --end 0.05 --set domain.size=[1,1] \
    --set domain.resolution=64 --set "reduced.basis=$work/data.basis" --out shear
check "an empty report of its chapter" "$selkie" reproduce reduced --report-only --out empty
grep -q '^## Table 5.1' empty/report.md && good "it has its table" || bad "it has no table"

expect "a scene of another method" 2 'must be "reduced"' basis examples/channel_2d -o no.basis
expect "snapshots of no run" 2 'none' basis reduced/jet_small --snapshots none -o no.basis
expect "a basis of another domain" 2 'is for 1 x 1 m and 64 x 64 cells' check reduced/jet_small \
    --set domain.resolution=80 --set reduced.drawn=[] --set reduced.excite=[] --set "reduced.basis=$work/jet.basis"
head -c 5000 jet.basis >cut.basis
expect "a basis that is cut off" 2 'is cut off' check reduced/jet_small --set reduced.drawn=[] \
    --set reduced.excite=[] --set "reduced.basis=$work/cut.basis"
cp jet.basis wrong.basis
printf x | dd of=wrong.basis bs=1 seek=9000 conv=notrunc 2>/dev/null
expect "bodies that overlap" 2 'overlaps bodies\[0\]' check reduced/game --set bodies[0].shape.center=[0.509,0.33]
expect "info of a basis with a wrong byte" 2 'checksum is wrong' info wrong.basis
"$selkie" info jet.basis | grep -q '63 in closed form, 1 further, 1 flows' && good "info of a basis" || bad "info of a basis"
expect "a basis with a wrong byte" 2 'checksum is wrong' check reduced/jet_small --set reduced.drawn=[] \
    --set reduced.excite=[] --set "reduced.basis=$work/wrong.basis"
check "a run with dye" "$selkie" run reduced/jet_small -j 1 -q --end 0.1 --out dyed --set render.style=dye \
    --set 'reduced.dye=[{"shape":{"type":"box","min":[0,0],"max":[0.5,1]}}]'
check "its pictures" "$selkie" render dyed -q --no-film --width 200
[ -s dyed/frames/dye_0003.png ] && [ -s dyed/pictures/frame_0003.png ] && good "they are there" || bad "no pictures"
finish
