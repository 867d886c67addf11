# Completion scripts: they know every command, option and key, and complete words in each shell that is here.
. "$(dirname "$0")/common.sh"
expect "no shell" 2 "needs SHELL" completion
expect "an unknown shell" 2 "bash, zsh and fish" completion tcsh

commands=$("$selkie" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for shell in bash zsh fish; do
    check "a script for $shell" sh -c '"$0" completion "$1" >"$1.txt"' "$selkie" $shell
    missing=
    for command in $commands; do
        grep -qw "$command" $shell.txt || missing="$missing $command"
        for option in $("$selkie" "$command" --help | grep -Eo '^ +(-[a-z], )?--[a-z-]+' | grep -Eo -- '--[a-z-]+'); do
            grep -Eq -- "(--|-l )${option#--}" $shell.txt || missing="$missing $command:$option"
        done
    done
    for key in time.end= transfer=apic 'liquids\[0\].shape.radius=' output.ply=true sph.kernel=wendland; do
        grep -q "$key" $shell.txt || missing="$missing $key"
    done
    [ -z "$missing" ] && good "$shell: all commands, options and keys" || bad "$shell: missing$missing"
done

# complete LINE: what bash makes of the line, a word a line.
PATH=$(dirname "$selkie"):$PATH
complete_line() {
    bash --norc -c 'source bash.txt
        COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$'"'"' \t\n"><=;|&(:'"'"'
        _selkie 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}

# completes LINE WORD...: exactly these words, in any order.
completes() {
    line=$1
    shift
    got=$(complete_line "$line" | sort | tr '\n' ' ')
    wanted=$(printf '%s\n' "$@" | sort | tr '\n' ' ')
    [ "$got" = "$wanted" ] && good "bash: '$line' becomes $wanted" || bad "bash: '$line' becomes '$got', not '$wanted'"
}

mkdir runs && echo '{}' >mine.json && echo x >mine.txt
completes 'selkie re' render reproduce
completes 'selkie run --o' --out
completes 'selkie run --back' --backend
completes 'selkie check x --backend pl' plain
completes 'selkie render x --style su' surface
completes 'selkie run dam_br' dam_break_3d
completes 'selkie run min' mine.json
completes 'selkie plot ru' runs
completes 'selkie run x -o ru' runs
completes 'selkie run x --set time.m' time.min_step= time.max_step=
completes 'selkie run x --set transfer=a' apic
completes 'selkie completion z' zsh
completes 'selkie reproduce u' uic
completes 'selkie help pl' plot

# --- The other shells, where they are installed
if command -v zsh >/dev/null; then
    check "zsh reads its script" zsh -n zsh.txt
    # Words of zsh's own completion, by a terminal that is none.
    cat >driver.zsh <<'DRIVER'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT=; autoload -Uz compinit; compinit -u -D; source ./zsh.txt; bindkey '^I' complete-word"
zpty -w shell "zstyle ':completion:*' list-prompt ''; LISTMAX=10000"
zpty -w shell "echo rea''dy"
zpty -r -m shell line '*ready*'
zpty -w -n shell $'selkie reproduce u\t'
sleep 2
zpty -w -n shell $' --fig\t'
sleep 1
zpty -w shell ""
zpty -w shell "echo fin''ished; exit"
zpty -r -m shell line '*finished*'
print -r -- $line
DRIVER
    timeout 60 zsh -f driver.zsh >zsh.out 2>&1
    grep -aq 'reproduce uic' zsh.out && grep -aq -- '--figure' zsh.out && good "zsh completes" || bad "zsh: $(cat zsh.out)"
fi
if command -v fish >/dev/null; then
    check "fish reads its script" fish --no-execute fish.txt
    HOME=$work fish -c 'source fish.txt; complete -C "selkie re"' >fish.out 2>&1
    [ "$(cut -f1 fish.out | tr '\n' ' ')" = "render reproduce " ] && good "fish completes commands" || bad "fish: $(cat fish.out)"
    HOME=$work fish -c 'source fish.txt; complete -C "selkie run x --set transfer=a"' >fish.out 2>&1
    grep -q '^transfer=apic' fish.out && good "fish completes keys" || bad "fish: $(cat fish.out)"
    HOME=$work fish -c 'source fish.txt; complete -C "selkie run dam_b"' >fish.out 2>&1
    grep -q 'dam_break_3d' fish.out && good "fish completes scenes" || bad "fish: $(cat fish.out)"
fi
finish
