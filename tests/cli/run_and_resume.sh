# A run that is stopped, killed or damaged goes on to the same bits as one that was not.
. "$(dirname "$0")/common.sh"
write_dam dam.json

# wait_for_steps DIR N PID: until stats.csv has N rows, or the process has ended.
wait_for_steps() {
    while kill -0 "$3" 2>/dev/null; do
        [ -f "$1/stats.csv" ] && [ "$(wc -l <"$1/stats.csv")" -gt "$2" ] && return 0
        sleep 0.01
    done
    return 1
}

# Started on its own and not through a function, so that $! is the command itself and signals reach it: background jobs
# of a script ignore SIGINT unless they say otherwise, which is what job control (set -m) does.
set -m

check "the run that all are compared with" "$selkie" run dam.json --out whole --quiet --threads 2
[ "$(wc -l <whole/stats.csv)" -eq 201 ] && good "200 steps" || bad "not 200 steps"

check "one thread" "$selkie" run dam.json --out single --quiet --threads 1
check "one thread gives the same bits as two" same_run whole single

# --- Interrupted, twice: by Ctrl-C and by SIGTERM
"$selkie" run dam.json --out stopped >/dev/null 2>error.txt &
process=$!
wait_for_steps stopped 30 $process
kill -INT $process
wait $process
code=$?
[ $code -eq 130 ] && good "Ctrl-C ends with 130" || bad "Ctrl-C ends with $code: $(cat error.txt)"
grep -q -- "selkie run --resume --out stopped" error.txt && good "and says how to go on" || bad "says nothing: $(cat error.txt)"
[ ! -e stopped/finished ] && good "it is not marked finished" || bad "it is marked finished"
"$selkie" info stopped | grep -q "not finished" && good "info says so" || bad "info does not say that it is not finished"
"$selkie" run dam.json --out stopped --resume --quiet 2>error.txt &
process=$!
wait_for_steps stopped 90 $process
kill -TERM $process
wait $process
code=$?
[ $code -eq 130 ] && good "SIGTERM ends with 130" || bad "SIGTERM ends with $code: $(cat error.txt)"
check "resumed without naming the scene" "$selkie" run --resume --out stopped --quiet --threads 1
check "the same bits as the whole run" same_run whole stopped
[ -e stopped/finished ] && good "it is marked finished" || bad "it is not marked finished"

# --- Killed without warning; the newest checkpoint damaged on top of it
"$selkie" run dam.json --out killed --quiet --set output.checkpoint_interval=0.001 --set output.checkpoint_keep=4 &
process=$!
wait_for_steps killed 100 $process
kill -KILL $process
wait $process 2>/dev/null
# Killed between writing a checkpoint and removing the oldest there may be one more than is kept.
kept=$(ls killed/checkpoints/*.selkie | wc -l)
[ "$kept" -ge 2 ] && [ "$kept" -le 5 ] && good "killed with $kept checkpoints" || bad "killed with $kept checkpoints"
newest=$(ls killed/checkpoints/*.selkie | tail -1)
printf 'XXXX' | dd of="$newest" bs=1 seek=500 conv=notrunc 2>/dev/null
echo "77,0.1" >>killed/stats.csv
"$selkie" run dam.json --out killed --resume --quiet --set output.checkpoint_interval=0 2>error.txt
code=$?
[ $code -eq 0 ] && grep -q "${newest##*/}.*before it is used" error.txt && [ -e "$newest.damaged" ] &&
    good "a damaged checkpoint is told and the one before it used" || bad "damaged checkpoint: $code: $(cat error.txt)"
check "the same bits as the whole run" same_run whole killed

# --- No place for further ones: the message names the newest that is there
"$selkie" run dam.json --out moved --quiet --threads 2 --set output.checkpoint_interval=0.001 2>error.txt &
process=$!
wait_for_steps moved 40 $process
mv moved/checkpoints moved/elsewhere
wait $process
code=$?
newest=$(ls moved/elsewhere/*.selkie | tail -1 | sed 's/.*_0*\([0-9]*\)\.selkie/\1/')
[ $code -eq 2 ] && grep -q "moved/checkpoints/checkpoint_" error.txt && grep -q "saved up to step $newest;" error.txt &&
    good "a checkpoint that cannot be written is told, with the step to go on from" ||
    bad "checkpoint without a folder, newest $newest: $code: $(cat error.txt)"

# --- No checkpoint at all
cp -r whole bare && rm -r bare/checkpoints bare/finished
"$selkie" run dam.json --out bare --resume >output.txt 2>&1 && grep -q "starting anew" output.txt &&
    good "without a checkpoint it starts anew and says so" || bad "without a checkpoint: $(cat output.txt)"
check "the same bits as the whole run" same_run whole bare

# --- Further than it was meant to
check "half of it" "$selkie" run dam.json --out longer --quiet --end 0.25
check "the rest" "$selkie" run --resume --out longer --quiet --frames 10
check "the same bits as the whole run" same_run whole longer
cp -r longer short && rm short/stats.csv
"$selkie" run --resume --out short --quiet --end 0.55 2>error.txt && grep -q "short/stats.csv is missing" error.txt &&
    good "a table that is gone is named" || bad "a table that is gone: $(cat error.txt)"
"$selkie" run --resume --out longer >output.txt 2>&1 && grep -q "already reached its end" output.txt &&
    good "a finished run is not run again" || bad "a finished run: $(cat output.txt)"

# --- A scene with a mesh: its name is relative in the scene and absolute in scene.json
check "a scene with a mesh" "$selkie" run mesh_obstacle_3d --set domain.resolution=16 --frames 1 --out meshed --quiet
check "is the same when resumed" "$selkie" run mesh_obstacle_3d --set domain.resolution=16 --frames 2 --out meshed --resume --quiet
mkdir elsewhere && cp meshed/scene.json elsewhere/
check "and runs from anywhere" "$selkie" run elsewhere/scene.json --out elsewhere/run --quiet
check "to the same bits" same_run meshed elsewhere/run

# --- What may not change
expect "another transfer" 2 "transfer" run dam.json --out longer --resume --set transfer=apic
sed 's/0.35/0.4/' dam.json >other.json
expect "another scene" 2 "liquids\[0\].shape.max.*scene.json" run other.json --out longer --resume
expect "an end that is past" 2 "already" run --resume --out longer --end 0.1
check "another output is fine" "$selkie" run dam.json --out longer --resume --quiet --end 0.55 --set output.vtp=true
[ -e longer/frames/particles_0011.vtp ] && good "and is written" || bad "and is not written"

# --- Two at once
"$selkie" run dam.json --out shared --quiet --end 5 2>/dev/null &
process=$!
wait_for_steps shared 3 $process
expect "a second run in the same folder" 2 "another run" run dam.json --out shared --resume
kill -KILL $process
wait $process 2>/dev/null

# --- Anew
mkdir -p stopped/mine && echo mine >stopped/mine/notes.txt && echo mine >stopped/notes.txt
check "force" "$selkie" run dam.json --out stopped --force --quiet --frames 2
[ ! -e stopped/frames/particles_0003.ply ] && [ "$(wc -l <stopped/stats.csv)" -eq 41 ] &&
    [ "$(cat stopped/mine/notes.txt stopped/notes.txt | grep -c mine)" -eq 2 ] &&
    good "removes the run's files and nothing else" || bad "force: $(ls -R stopped)"
finish
