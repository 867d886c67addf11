# `selkie splash`: samples, a model, its report, droplets of a run, and what is refused.
. "$(dirname "$0")/common.sh"

cat >tank.json <<'JSON'
{
  "title": "a small tank of splashes",
  "domain": {"dimension": 2, "size": [0.4, 0.3], "cell_size": 0.005},
  "time": {"end": 0.3, "fps": 60},
  "surface_tension": 0.073,
  "volume": "idp",
  "particles": {"per_cell": 4},
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.4, 0.05]}}]
}
JSON

# Five runs: one calibrates, one is held out.
check "samples" "$selkie" splash data --dimension 2 --template tank.json --runs 5 --scales 1 --out samples -q -j 2
touch -d '2 hours ago' samples/runs/run_001.safetensors
rm samples/data.safetensors samples/runs/run_003.safetensors
check "samples, interrupted" "$selkie" splash data --dimension 2 --template tank.json --runs 5 --scales 1 --out samples -q -j 2
[ -n "$(find samples/runs/run_001.safetensors -mmin +60)" ] && good "a run that is there is kept" || bad "a run was made again"

for threads in 1 2; do
    check "a model on $threads threads" "$selkie" splash train samples --steps 30 --batch 200 --out model_$threads -q -j $threads
done
cmp -s model_1/model.safetensors model_2/model.safetensors && good "the same weights" || bad "weights depend on threads"
head -n 1 model_1/report.csv | grep -q '^split,auc,log_loss,prior_log_loss,calibration_error,nll,nll_constant,' &&
    good "report.csv has its columns" || bad "report.csv: $(head -n 1 model_1/report.csv)"
grep -q '^held_out,0\.[5-9]' model_1/report.csv && good "the held-out run has a score" || bad "no held_out row"

# A training that is interrupted goes on with the same weights; one of another recipe does not.
"$selkie" splash train samples --steps 4000 --batch 100 --out whole_training -q -j 2
"$selkie" splash train samples --steps 4000 --batch 100 --out cut_training -q -j 2 &
pid=$!
for wait in $(seq 200); do
    [ -e cut_training/training_classifier.safetensors ] && break
    sleep 0.05
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
[ -e cut_training/training_classifier.safetensors ] && [ ! -e cut_training/model.safetensors ] &&
    good "a training is interrupted" || bad "a training was not interrupted"
mkdir other_training
cp cut_training/training_* other_training
"$selkie" splash train samples --steps 4000 --batch 100 --out cut_training -j 2 >again.txt
grep -q 'classifier: goes on after step' again.txt && good "it goes on" || bad "it begins anew"
cmp -s whole_training/model.safetensors cut_training/model.safetensors && cmp -s whole_training/curves.csv cut_training/curves.csv &&
    good "with the same weights and curves" || bad "a training that goes on differs"
[ -z "$(ls cut_training | grep training_)" ] && good "no states are left" || bad "states are left"
"$selkie" splash train samples --steps 30 --batch 200 --out other_training -j 2 >again.txt
grep -q 'goes on' again.txt && bad "a state of another recipe is used" || good "a state of another recipe is not used"

# Droplets of a run, by thresholds, with an obstacle in it.
cat >dam.json <<'JSON'
{
  "title": "a dam that breaks at a block",
  "domain": {"dimension": 2, "size": [0.6, 0.5], "cell_size": 0.01},
  "time": {"end": 0.5, "fps": 60},
  "volume": "idp",
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.15, 0.35]}}],
  "obstacles": [{"shape": {"type": "box", "min": [0.35, 0], "max": [0.4, 0.06]}}]
}
JSON
check "a run" "$selkie" run dam.json --out dam -q -j 2
last=
for threshold in 0 0.5 0.8 0.95; do
    made=$("$selkie" splash add dam --rate 20 --threshold $threshold --force -j 2 | grep 'droplets made' | cut -d' ' -f1 | tr -d ,)
    if [ -z "$made" ]; then
        bad "no droplets at threshold $threshold"
    elif [ -n "$last" ] && [ "$made" -gt "$last" ]; then
        bad "threshold $threshold: $made droplets, more than $last"
    else
        good "threshold $threshold: $made droplets"
    fi
    last=$made
done
# Droplets made with other options are made again, with the same ones they stay.
"$selkie" splash add dam --rate 20 -j 2 >again.txt
grep -q 'droplets made' again.txt && good "other options make them again" || bad "$(cat again.txt)"
"$selkie" splash add dam --rate 20 -j 2 >again.txt
grep -q 'droplets are there' again.txt && good "the same options keep them" || bad "$(cat again.txt)"
"$selkie" splash add dam --rate 10 -j 2 >again.txt
grep -q 'droplets made' again.txt && good "another rate makes them again" || bad "$(cat again.txt)"
check "the model of these samples" "$selkie" splash add dam --model model_1/model.safetensors --force -q

# The weights that come with Selkie on runs that they have not seen.
"$selkie" splash judge samples -j 2 >judged.csv
awk -F, '$1 == "all" { found = 1; bad = $2 < 0.935 || $3 / $4 > 0.7 || $5 > 0.005 || $7 - $6 < 0.5
    printf "AUC %s, log loss over the prior'"'"'s %.3f, calibration error %s, likelihood %.2f nat\n", $2, $3 / $4, $5, $7 - $6 }
    END { exit bad || !found }' judged.csv && good "the weights hold on these samples" || bad "$(cat judged.csv)"
# The file holds rounded weights, so that the last digits differ.
"$selkie" splash judge samples --model model_1/model.safetensors >judged.csv
paste -d, model_1/report.csv judged.csv | awk -F, '$1 == "held_out" { close_by = ($2 - $16) ^ 2 < 1e-8 && ($6 - $20) ^ 2 < 1e-6 }
    END { exit !close_by }' && good "judge gives the figures of the report" || bad "judge: $(cat judged.csv)"
expect "a model of the other dimension" 2 'was trained in 3D' splash judge samples --model "$source/scenes/splash/weights/splash_3d.safetensors"

# Droplets below a particle's size: in files of their own, in pairs around those of the run, whose bits stay.
check "a run with droplets" "$selkie" run dam.json --set splashes=default --set splash.rate=20 --out whole -q -j 2
check "and with smaller ones" "$selkie" run dam.json --set splashes=default --set splash.rate=20 --set splash.pairs=2 --out pairs -q -j 2
cmp -s whole/frames/particles_0028.ply pairs/frames/particles_0028.ply && good "the run is the same" || bad "pairs change the run"
pieces=$(grep -a '^element vertex' pairs/frames/splash_0028.ply | cut -d' ' -f3)
[ "${pieces:-0}" -gt 0 ] && good "$pieces smaller droplets" || bad "no smaller droplets"
expect "droplets that are there already" 2 'splash.pairs' splash add pairs
"$selkie" splash data --dimension 2 --template tank.json --runs 1 --scales 1 --out one -q -j 2
"$selkie" splash judge one | grep -q '^validation,,,,,,,0,0,$' && good "a split without samples says so" || bad "$("$selkie" splash judge one)"

expect "too many samples" 2 'at most 1000' splash add dam --samples 1001
expect "an option of another verb" 2 'splash add: --steps has no effect: it is for train' splash add dam --steps 5
expect "no folder" 2 'folder of a run' splash add
expect "no samples" 2 'data.safetensors' splash train nowhere --out model_3
expect "scales that are none" 2 'scales' splash data --scales 1,x --out other
head -c 5000 model_1/model.safetensors >cut.safetensors
expect "weights that are cut off" 2 'cut off' splash add dam --model cut.safetensors --force
finish
