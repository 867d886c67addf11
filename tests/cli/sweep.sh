# `selkie sweep`: the runs, their table and plot, going on, and what is refused.
. "$(dirname "$0")/common.sh"
write_dam dam.json
quick="--set time.end=0.1 --set time.step=0.005 --quiet"

# --- Refused, before anything is written
expect "no keys" 2 'needs --vary' sweep dam.json --out bad
expect "no values" 2 'a key and its values' sweep dam.json --vary domain.resolution --out bad
expect "an unknown key" 2 'domain.resolutoin=16.*unknown.*resolutoin|resolutoin.*did you mean' sweep dam.json --vary domain.resolutoin=16,32 --out bad
expect "a bad value" 2 "transfer=flop.*transfer.*flop" sweep dam.json --vary transfer=flip,flop --out bad
expect "a value out of range" 2 'time.cfl=-1.*time.cfl' sweep dam.json --vary time.cfl=1,-1 --out bad
expect "an empty value" 2 'transfer: an empty value' sweep dam.json --vary transfer=flip,,apic --out bad
expect "a value twice" 2 'apic is there twice' sweep dam.json --vary transfer=apic,apic --out bad
expect "a key twice" 2 'transfer: the key is varied twice' sweep dam.json --vary transfer=apic --vary transfer=flip --out bad
expect "a key set and varied" 2 'give one key two values' sweep dam.json --vary transfer=apic --set transfer=flip --out bad
expect "an empty range" 2 'time.cfl=1:1:3: the range is empty' sweep dam.json --vary time.cfl=1:1:3 --out bad
expect "a range without a count" 2 'is not a range' sweep dam.json --vary time.cfl=1:2 --out bad
expect "a range of one" 2 'the count 1 is not from 2' sweep dam.json --vary time.cfl=1:2:1 --out bad
expect "a range through 0 with log" 2 'one sign' sweep dam.json --vary time.cfl=0:2:3:log --out bad
expect "too many runs" 2 '121 runs; --yes' sweep dam.json --vary time.cfl=1:2:11 --vary viscosity=1:2:11 --out bad
expect "lists of different lengths" 2 'time.cfl has 2, viscosity has 3' sweep dam.json --together --vary time.cfl=1,2 --vary viscosity=1,2,3 --out bad
expect "an unknown column" 2 '--plot nothing' sweep dam.json --vary time.cfl=1,2 --plot nothing --out bad
[ ! -e bad ] && good "nothing is written" || bad "a folder was made"

# --- Names and values
"$selkie" sweep dam.json --vary viscosity=1:1000:4:log --vary 'gravity=[0,-9.81],[0,-1.62]' --dry-run --out bad >names.txt
printf '%s\n' 'viscosity=1,gravity=0,-9.81' 'viscosity=1,gravity=0,-1.62' 'viscosity=10,gravity=0,-9.81' \
    'viscosity=10,gravity=0,-1.62' 'viscosity=100,gravity=0,-9.81' 'viscosity=100,gravity=0,-1.62' \
    'viscosity=1000,gravity=0,-9.81' 'viscosity=1000,gravity=0,-1.62' | cmp -s - names.txt &&
    good "every combination, with readable names" || bad "the names: $(cat names.txt)"
"$selkie" sweep dam.json --together --vary 'obstacles[0].shape.radius=0.1:0.2:3' --vary time.cfl=1,2,3 --dry-run --out bad >names.txt
printf 'obstacles.0.shape.radius=%s,time.cfl=%s\n' 0.1 1 0.15 2 0.2 3 | cmp -s - names.txt && good "--together" || bad "--together: $(cat names.txt)"
[ ! -e bad ] && good "--dry-run writes nothing" || bad "--dry-run made a folder"

# --- Runs side by side
check "four runs" "$selkie" sweep dam.json --vary domain.resolution=16,24 --vary transfer=flip,apic $quick --out four --jobs 2 --threads 1 --plot kinetic_energy --plot front
[ "$(head -1 four/sweep.csv | cut -d, -f-5)" = domain.resolution,transfer,exit_code,warnings,step ] && good "the header" || bad "the header: $(head -1 four/sweep.csv)"
for column in time particles volume_ratio kinetic_energy potential_energy max_speed_largest wall_time front; do
    head -1 four/sweep.csv | tr , '\n' | grep -qx "$column" || bad "no column $column"
done
[ "$(wc -l <four/sweep.csv)" -eq 5 ] && [ "$(cut -d, -f3 four/sweep.csv | grep -cx 0)" -eq 4 ] && good "four rows with exit code 0" || bad "the table: $(cat four/sweep.csv)"
file four/sweep.png 2>/dev/null | grep -q PNG || [ -s four/sweep.png ] && good "a plot" || bad "no plot"
check "a run alone" "$selkie" run dam.json --set domain.resolution=24 --set transfer=apic $quick --out alone
check "a run of the sweep has its bits" same_run alone four/runs/domain.resolution=24,transfer=apic
last=$(without_times alone/stats.csv | tail -1 | cut -d, -f3)
awk -F, -v t="$last" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time") c = i } NR == 5 { exit !($c == t) }' four/sweep.csv &&
    good "the table has its time" || bad "the table has another time than $last"

# --- Once more: finished runs are kept, interrupted ones go on
touch -d '2 hours ago' four/runs/domain.resolution=16,transfer=flip/stats.csv
rm four/runs/domain.resolution=24,transfer=flip/finished
"$selkie" sweep dam.json --vary domain.resolution=16,24 --vary transfer=flip,apic --set time.end=0.1 --set time.step=0.005 --out four >out.txt 2>&1
grep -q '^3 of 4 runs are finished already' out.txt && good "three are kept" || bad "kept: $(cat out.txt)"
[ -n "$(find four/runs/domain.resolution=16,transfer=flip/stats.csv -mmin +60)" ] && good "a finished run is not repeated" || bad "a finished run was repeated"
[ -e four/runs/domain.resolution=24,transfer=flip/finished ] && good "an unfinished one is finished" || bad "it is not finished"
check "a later end" "$selkie" sweep dam.json --vary domain.resolution=16,24 --vary transfer=flip,apic --set time.end=0.15 --set time.step=0.005 --quiet --out four
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time") c = i } NR > 1 && $c != 0.15 { exit 1 }' four/sweep.csv &&
    good "takes them further" || bad "did not take them further: $(cat four/sweep.csv)"
expect "another scene" 2 'changes viscosity, and four/runs/.*another value' sweep dam.json --vary domain.resolution=16,24 --vary transfer=flip,apic --set viscosity=0.01 $quick --out four
sed 's/0.35, 0.5/0.35, 0.4/' dam.json >other.json
expect "a changed scene file" 2 'liquids.*differs from four/runs/.*--force' sweep other.json --vary domain.resolution=16,24 --vary transfer=flip,apic --set time.end=0.15 --set time.step=0.005 --out four
check "--force starts again" "$selkie" sweep dam.json --vary domain.resolution=16,24 --vary transfer=flip,apic --set viscosity=0.01 --force $quick --out four
expect "a folder with a run" 2 'holds a single run' sweep dam.json --vary viscosity=1,2 --out alone

# --- A run that fails does not stop the others, and is tried again. A file in the place of its folder's tables fails.
mkdir -p some/runs/viscosity=2/stats.csv
"$selkie" sweep dam.json --vary viscosity=1,2,3 $quick --out some >out.txt 2>error.txt
code=$?
[ $code -eq 2 ] && grep -q '^selkie: viscosity=2: failed with exit code 2: .*stats.csv' error.txt && good "a failed run is named" || bad "code $code: $(cat error.txt)"
[ "$(cut -d, -f2 some/sweep.csv | tr '\n' ' ')" = "exit_code 0 2 0 " ] && good "its exit code is in the table" || bad "table: $(cat some/sweep.csv)"
rmdir some/runs/viscosity=2/stats.csv
check "it is tried again" "$selkie" sweep dam.json --vary viscosity=1,2,3 $quick --out some
[ "$(cut -d, -f2 some/sweep.csv | tr '\n' ' ')" = "exit_code 0 0 0 " ] && good "and finished" || bad "table: $(cat some/sweep.csv)"

# --- Interrupted: the runs save their state, and the same command goes on to the same bits
set -m
long="--set time.end=0.5 --set time.step=0.001"
"$selkie" sweep dam.json --vary transfer=flip,apic $long --out stopped --jobs 2 --threads 1 >out.txt 2>error.txt &
process=$!
while kill -0 $process 2>/dev/null && ! [ "$(cat stopped/runs/transfer=flip/stats.csv 2>/dev/null | wc -l)" -gt 20 ]; do sleep 0.01; done
kill -INT $process
wait $process
code=$?
[ $code -eq 130 ] && grep -q 'interrupted with 0 of 2 runs finished' error.txt && good "Ctrl-C ends with 130" || bad "Ctrl-C: $code $(cat error.txt)"
ls stopped/runs/transfer=flip/checkpoints/*.selkie >/dev/null 2>&1 && good "a run saved its state" || bad "no checkpoint: $(cat stopped/runs/*/log.txt)"
[ -s stopped/sweep.csv ] && good "the table so far is there" || bad "no table"
check "it goes on" "$selkie" sweep dam.json --vary transfer=flip,apic $long --out stopped --threads 1 --quiet
check "the whole run" "$selkie" run dam.json --set transfer=flip $long --quiet --out whole
check "the same bits as an uninterrupted run" same_run whole stopped/runs/transfer=flip
finish
