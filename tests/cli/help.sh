# Every command explains itself, and the manual says the same.
. "$(dirname "$0")/common.sh"
manual=$source/docs/manual

check "version" sh -c '"$0" --version | grep -Eq "^selkie [0-9]+\.[0-9]+\.[0-9]+$"' "$selkie"
"$selkie" --help | awk 'length > 100 || / $/' | grep . && bad "--help: lines that are too long"
"$selkie" --help | grep -q SPH && grep -q SPH "$manual/selkie.1" && good "help and manual page name SPH" || bad "SPH is not named"
check "help" sh -c '"$0" --help | grep -q "^commands:"' "$selkie"
commands=$("$selkie" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in run sweep check render plot convert mesh whitewater info list splash basis reproduce doctor schema completion studio; do
    echo "$commands" | grep -qx "$command" || bad "$command is not in the help"
done
for command in $commands; do
    "$selkie" "$command" --help >help.txt 2>error.txt || bad "$command --help fails"
    [ -s error.txt ] && bad "$command --help complains"
    grep -q "^usage: selkie $command" help.txt || bad "$command --help shows no usage"
    awk 'length > 79 || / $/' help.txt | grep . && bad "$command --help: lines that are too long or end in a space"
    "$selkie" help "$command" | cmp -s - help.txt || bad "help $command is not $command --help"
    missing=
    for option in $(grep -Eo '^ +(-[a-z], )?--[a-z-]+' help.txt | grep -Eo -- '--[a-z-]+'); do
        [ "$option" = --help ] && continue
        sed -n "/^## selkie $command/,/^## /p" "$manual/command.md" | grep -q -- "$option" ||
            missing="$missing $option (command.md)"
        grep -q -- "Fl -\{0,1\}.*${option#-}" "$manual/selkie.1" || missing="$missing $option (selkie.1)"
    done
    [ -z "$missing" ] && good "$command --help, and its options are in the manual" ||
        bad "$command: not in the manual:$missing"
done
if command -v groff >/dev/null; then
    groff -mdoc -Tutf8 -ww "$manual/selkie.1" >page.txt 2>error.txt
    [ ! -s error.txt ] && grep -q "simulate liquids" page.txt && good "the manual page can be formatted" ||
        bad "the manual page: $(cat error.txt)"
fi

# Every key of scene files, from the table, in the help and on the manual page.
"$selkie" schema --keys >keys.txt || bad "schema --keys fails"
"$selkie" run --help | tr ', ' '\n\n' >words.txt
missing=
for key in $(sed -n 's/^  \([a-z_]*\) .*/\1/p' keys.txt); do
    grep -qx "$key" words.txt || missing="$missing $key (help)"
    grep -qx "\.It Cm $key" "$manual/selkie.1" || missing="$missing $key (selkie.1)"
done
[ "$(grep -c '^  ' keys.txt)" -gt 150 ] && [ -z "$missing" ] && good "$(grep -c '^  ' keys.txt) keys in help and manual page" ||
    bad "keys:$missing"

"$selkie" schema --statistics >table.txt || bad "schema --statistics fails"
sed -n '/^| column of `stats.csv`/,/^$/p' "$manual/output.md" | grep . | cmp -s - table.txt &&
    good "the columns of stats.csv in output.md are those of the table" ||
    bad "output.md: the table of columns differs from selkie schema --statistics"

"$selkie" list >list.txt || bad "list fails"
grep -Eq '^examples/dam_break_3d +[A-Z]' list.txt && good "list shows names and titles" || bad "list: $(head -3 list.txt)"
count=$(find "$source/scenes" -name '*.json' ! -name '*.schema.json' | wc -l)
[ "$(wc -l <list.txt)" -eq "$count" ] && good "list shows all $count scenes" || bad "list does not show $count scenes"
while read -r name title; do
    case $name in # eigenvectors beside obstacles need ARPACK
    reduced/rooms*) "$selkie" doctor | grep -q '^arpack *there' || continue ;;
    esac
    check "check $name" "$selkie" check "$name"
done <list.txt
mkdir mine && cp "$source/scenes/examples/double_dam_2d.json" mine/my_own.json
SELKIE_SCENES=$work/mine "$selkie" list | grep -q '^my_own ' && good "SELKIE_SCENES is searched" ||
    bad "SELKIE_SCENES is not searched"

"$selkie" doctor >doctor.txt || bad "doctor fails"
for word in compiler instructions threads memory zlib json-c assimp embree libpng cairo ode ffmpeg; do
    grep -q "^$word " doctor.txt || bad "doctor does not speak of $word"
done
grep -q missing doctor.txt && ! grep -q 'apt-get install' doctor.txt && bad "doctor does not say how to get what is missing"
good "doctor"
finish
