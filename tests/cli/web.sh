# The page without a server (`make web`), where it was built: that it works in a headless Chromium, and its size.
. "$(dirname "$0")/_browser.sh"
site=${SELKIE_SITE:-$source/build-web/site}
[ -f "$site/selkie.wasm" ] || skip "make web has not been run"
check "reduced fluids and liquids in WebAssembly" timeout 500 node "$source/tests/cli/web.mjs" "$site" "$chromium" pictures

# What a page loads, isolated (with threads) and not, each file compressed as a web server does it. Scenes come one by one
# as they are opened or seen in the list.
while read -r -a files; do
    bytes=0
    for file in "${files[@]}"; do
        case $file in scenes/*) continue ;; esac
        [ ! -f "$site/$file" ] || bytes=$((bytes + $(gzip -9 <"$site/$file" | wc -c)))
    done
    case " ${files[*]} " in *selkie_threads.wasm*) what="a page with threads" ;; *) what="a page with one thread" ;; esac
    [ "$bytes" -gt 300000 ] && [ "$bytes" -lt 1000000 ] && good "$what loads $bytes bytes compressed" || bad "$what loads $bytes bytes compressed"
done <loaded.txt

python3 "$source/web/wasm/serve.py" "$site" 0 >link.txt &
server=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s link.txt ] || sleep 0.3; done
python3 - "$(cat link.txt)" <<'END' && good "serve.py isolates the page" || bad "serve.py does not isolate the page"
import sys, urllib.request
headers = urllib.request.urlopen(sys.argv[1] + "selkie_threads.worker.js").headers
sys.exit(headers["Cross-Origin-Opener-Policy"] != "same-origin" or headers["Cross-Origin-Embedder-Policy"] != "require-corp")
END
kill "$server"

# At most three times the processor time of one native thread: the 2D double dam of 71,100 particles, 60 steps of 5 ms.
scene=$source/scenes/idp/double_dam_2d.json
sed 's/"step": 0.02/"step": 0.005/' "$scene" >dam.json
TIMEFORMAT=%U
native=$({ time "$selkie" run dam.json --out native --quiet -j 1 --end 0.3 --set output.every=1000 2>/dev/null; } 2>&1)
one=$(node --no-liftoff "$source/tests/cli/web_speed.mjs" "$(dirname "$site")" dam.json 55 2>/dev/null)
web=$(echo "$one" | sed 's/.*, \([0-9.]*\) ms.*/\1/')
ratio=$(awk "BEGIN {print ${web:-0} * 60 / 1000 / ($native)}")
awk "BEGIN {exit !($ratio > 0.2 && $ratio < 3)}" && good "a step takes $ratio times as long as natively" || bad "a step takes $ratio times as long as natively"

# The same bits on three threads.
many=$(node --no-liftoff "$source/tests/cli/web_speed.mjs" "$(dirname "$site")" dam.json 55 3 2>/dev/null)
[ -n "$one" ] && [ "${one##*checksum }" = "${many##* 3 threads, checksum }" ] && good "three threads have the bits of one" || bad "three threads: $many; one: $one"
finish
