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
check "the model of these samples" "$selkie" splash add dam --model model_1/model.safetensors --force -q

expect "too many samples" 2 'at most 1000' splash add dam --samples 1001
expect "an option of another verb" 2 'splash add: --steps has no effect: it is for train' splash add dam --steps 5
expect "no folder" 2 'folder of a run' splash add
expect "no samples" 2 'data.safetensors' splash train nowhere --out model_3
expect "scales that are none" 2 'scales' splash data --scales 1,x --out other
head -c 5000 model_1/model.safetensors >cut.safetensors
expect "weights that are cut off" 2 'cut off' splash add dam --model cut.safetensors --force
finish
