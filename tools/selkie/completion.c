/* `selkie completion`: scripts that complete the command's words in bash, zsh and fish.
 *
 * Commands, options, choices and keys come from the tables that the parser uses. Names of scenes are asked for when a
 * word is completed.
 */
#include <stdio.h>
#include <string.h>

#include "defs/fields.h"
#include "defs/structs.h"
#include "tool.h"

/* --- What a word may be --- */

typedef enum word_kind { WORD_ANY, WORD_SCENE, WORD_FOLDER, WORD_FILE, WORD_KEY, WORD_LISTED } word_kind;

static word_kind kind_of_value(const option_spec *option)
{
    if (option->kind == OPTION_CHOICE)
        return WORD_LISTED;
    if (option->kind == OPTION_LIST && strchr(option->value, '='))
        return WORD_KEY;
    if (option->kind == OPTION_TEXT && !strcmp(option->value, "DIR"))
        return WORD_FOLDER;
    return option->kind == OPTION_TEXT ? WORD_FILE : WORD_ANY;
}

static word_kind kind_of_operand(const tool_command *command)
{
    if (command->words)
        return WORD_LISTED;
    if (!strncmp(command->synopsis, "SCENE", 5))
        return WORD_SCENE;
    if (!strncmp(command->synopsis, "DIR", 3))
        return WORD_FOLDER;
    return *command->synopsis ? WORD_FILE : WORD_ANY;
}

static void print_words(const char *const *words)
{
    for (int i = 0; words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
}

/* --- Keys --- */

/* Prints "path=" for each key below `type`, and "path=choice" for each choice; elements of arrays as [0]. */
static void print_keys(const sk_struct *type, sk_path *path, const char *separator)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        size_t before = sk_path_key(path, field->key);
        if (field->type == SK_FIELD_ENUM) {
            for (int c = 0; c < field->choices->count; c++)
                printf("%s=%s%s", path->text, field->choices->values[c].name, separator);
        } else if (field->type == SK_FIELD_BOOL) {
            printf("%s=true%s%s=false%s", path->text, separator, path->text, separator);
        } else if (!field->of) {
            printf("%s=%s", path->text, separator);
        } else if (type != &sk_shape_struct) { /* the shapes of a union nest without limit */
            if (field->type == SK_FIELD_ARRAY)
                sk_path_index(path, 0);
            print_keys(field->of, path, separator);
        }
        sk_path_cut(path, before);
    }
}

static void print_all_keys(const char *separator)
{
    sk_path path = {0};
    sk_path_cut(&path, 0);
    print_keys(&sk_scene_struct, &path, separator);
}

/* --- bash --- */

static void print_bash_kind(word_kind kind, const char *const *words)
{
    switch (kind) {
    case WORD_SCENE:
        printf("_selkie_reply -W \"$(selkie list 2>/dev/null | sed 's/ .*//; s/.*\\///')\"; _selkie_reply -d; "
               "_selkie_reply -f -X '!*.json'");
        break;
    case WORD_FOLDER:
        printf("_selkie_reply -d");
        break;
    case WORD_FILE:
        printf("_selkie_reply -f");
        break;
    case WORD_KEY:
        printf("_selkie_reply -W \"$_selkie_keys\"; compopt -o nospace 2>/dev/null");
        break;
    case WORD_LISTED:
        printf("_selkie_reply -W '");
        print_words(words);
        printf("'");
        break;
    case WORD_ANY:
        printf("return");
        break;
    }
}

static void print_bash_command(const tool_command *command)
{
    printf("    %s)\n        case $previous in\n", command->name);
    for (int i = 0; i < command->option_count; i++) {
        const option_spec *option = &command->options[i];
        if (option->kind == OPTION_FLAG)
            continue;
        printf("        --%s", option->name);
        if (option->letter)
            printf(" | -%c", option->letter);
        printf(") ");
        if (kind_of_value(option) != WORD_ANY) {
            print_bash_kind(kind_of_value(option), option->choices);
            printf("; ");
        }
        printf("return ;;\n");
    }
    printf("        esac\n        if [[ $word == -* ]]; then\n            _selkie_reply -W '");
    for (int i = 0; i < command->option_count; i++)
        printf("--%s ", command->options[i].name);
    printf("--help'\n        else\n            ");
    print_bash_kind(kind_of_operand(command), command->words);
    printf("\n        fi ;;\n");
}

static void print_bash(void)
{
    printf("# Completion of selkie for bash, made by `selkie completion bash`.\n\n_selkie_keys='");
    print_all_keys(" ");
    /* The words of the line are split at blanks only: bash also splits at '='. Replies then begin behind the last one.
     */
    printf("'\n\n_selkie_reply()\n{\n"
           "    local reply skip=\n"
           "    [[ $word == *=* && $COMP_WORDBREAKS == *=* ]] && skip=${word%%=*}=\n"
           "    while IFS= read -r reply; do\n"
           "        COMPREPLY+=(\"${reply#\"$skip\"}\")\n"
           "    done < <(compgen \"$@\" -- \"$word\")\n"
           "}\n\n_selkie()\n{\n"
           "    local line=${COMP_LINE:0:COMP_POINT} word previous words\n"
           "    read -ra words <<<\"$line\"\n"
           "    [[ $line == *[[:space:]] ]] && words+=('')\n"
           "    word=${words[${#words[@]} - 1]} previous=${words[${#words[@]} - 2]}\n"
           "    COMPREPLY=()\n"
           "    if [[ ${#words[@]} -le 2 || ( ${#words[@]} -eq 3 && ${words[1]} == help ) ]]; then\n"
           "        _selkie_reply -W '");
    for (int i = 0; commands[i]; i++)
        printf("%s ", commands[i]->name);
    printf("help --help --version'\n        return\n    fi\n    case ${words[1]} in\n");
    for (int i = 0; commands[i]; i++)
        print_bash_command(commands[i]);
    printf("    esac\n}\n\ncomplete -o filenames -F _selkie selkie\n");
}

/* --- zsh --- */

/* In single quotes; brackets and colons end a part of a specification of _arguments. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_kind(const char *name, word_kind kind, const char *const *words)
{
    putchar(':');
    print_zsh_text(name);
    putchar(':');
    if (kind == WORD_LISTED) {
        putchar('(');
        print_words(words);
        putchar(')');
    }
    fputs(kind == WORD_SCENE    ? "_selkie_scenes"
          : kind == WORD_FOLDER ? "_files -/"
          : kind == WORD_FILE   ? "_files"
          : kind == WORD_KEY    ? "_selkie_keys"
                                : "",
          stdout);
}

static void print_zsh_command(const tool_command *command)
{
    printf("    %s)\n        _arguments -s -S \\\n", command->name);
    for (int i = 0; i < command->option_count; i++) {
        const option_spec *option = &command->options[i];
        printf("            ");
        if (option->letter)
            printf("'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
                   option->kind == OPTION_FLAG ? "" : "+", option->name, option->kind == OPTION_FLAG ? "" : "=");
        else
            printf("'%s--%s%s[", option->kind == OPTION_LIST ? "*" : "", option->name,
                   option->kind == OPTION_FLAG ? "" : "=");
        print_zsh_text(option->help);
        putchar(']');
        if (option->kind != OPTION_FLAG)
            print_zsh_kind(option->value, kind_of_value(option), option->choices);
        printf("' \\\n");
    }
    printf("            '(-h --help)'{-h,--help}'[print the help]'");
    if (*command->synopsis) {
        printf(" \\\n            '%s", command->most_operands == 1 ? "1" : "*");
        print_zsh_kind(command->synopsis, kind_of_operand(command), command->words);
        putchar('\'');
    }
    printf(" ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef selkie\n# Completion of selkie for zsh, made by `selkie completion zsh`.\n\n"
           "_selkie_keys()\n{\n    local -a keys\n    keys=(\n");
    print_all_keys("\n");
    printf("    )\n    compadd -S '' -a keys\n}\n\n"
           "_selkie_scenes()\n{\n    local -a scenes\n"
           "    scenes=(${${(f)\"$(_call_program scenes selkie list 2>/dev/null)\"}%%%% *})\n"
           "    compadd -a scenes\n    _files -g '*.json'\n}\n\n"
           "_selkie()\n{\n    local -a commands\n    commands=(\n");
    for (int i = 0; commands[i]; i++) {
        printf("        '%s:", commands[i]->name);
        print_zsh_text(commands[i]->summary);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
           "        compadd -- --help --version\n        return\n    fi\n"
           "    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n");
    for (int i = 0; commands[i]; i++)
        print_zsh_command(commands[i]);
    printf("    esac\n}\n\n[[ $funcstack[1] == _selkie ]] && _selkie \"$@\" || compdef _selkie selkie\n");
}

/* --- fish --- */

static void print_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void print_fish_kind(word_kind kind, const char *const *words)
{
    switch (kind) {
    case WORD_SCENE:
        printf(" -f -a \"(selkie list 2>/dev/null | string replace -r ' .*' '')\"");
        break;
    case WORD_FOLDER:
        printf(" -f -a \"(__fish_complete_directories)\"");
        break;
    case WORD_FILE:
        printf(" -F");
        break;
    case WORD_KEY:
        printf(" -f -a \"$__selkie_keys\"");
        break;
    case WORD_LISTED:
        printf(" -f -a '");
        print_words(words);
        printf("'");
        break;
    case WORD_ANY:
        printf(" -f");
        break;
    }
}

static void print_fish_command(const tool_command *command)
{
    printf("complete -c selkie -n __fish_use_subcommand -f -a %s -d ", command->name);
    print_fish_text(command->summary);
    putchar('\n');
    for (int i = 0; i < command->option_count; i++) {
        const option_spec *option = &command->options[i];
        printf("complete -c selkie -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
        if (option->letter)
            printf(" -s %c", option->letter);
        if (option->kind != OPTION_FLAG) {
            printf(" -r");
            print_fish_kind(kind_of_value(option), option->choices);
        }
        printf(" -d ");
        print_fish_text(option->help);
        putchar('\n');
    }
    word_kind operand = kind_of_operand(command);
    if (operand != WORD_ANY) {
        printf("complete -c selkie -n '__fish_seen_subcommand_from %s'", command->name);
        print_fish_kind(operand, command->words);
        putchar('\n');
    }
    if (operand == WORD_SCENE)
        printf("complete -c selkie -n '__fish_seen_subcommand_from %s' -f -a \"(__fish_complete_suffix .json)\"\n",
               command->name);
}

static void print_fish(void)
{
    printf("# Completion of selkie for fish, made by `selkie completion fish`.\n\nset -g __selkie_keys ");
    print_all_keys(" ");
    printf("\ncomplete -c selkie -s h -l help -d 'print the help'\n"
           "complete -c selkie -n __fish_use_subcommand -l version -d 'print the version'\n");
    for (int i = 0; commands[i]; i++)
        print_fish_command(commands[i]);
}

/* --- The command --- */

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static int run_completion(const tool_arguments *arguments)
{
    static void (*const print[])(void) = {print_bash, print_zsh, print_fish};
    for (int i = 0; shells[i]; i++)
        if (!strcmp(shells[i], arguments->operands[0])) {
            print[i]();
            return EXIT_GOOD;
        }
    return complain("there is no completion for '%s'; there is one for bash, zsh and fish", arguments->operands[0]);
}

const tool_command completion_command = {
    .name = "completion",
    .synopsis = "SHELL",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "print a script that completes words in bash, zsh or fish",
    .description =
        "Prints a script for SHELL (bash, zsh or fish) that completes commands, options, their values, names "
        "of scenes, and keys after --set. 'make install' puts the scripts where the shells look for them.",
    .words = shells,
    .examples = "  source <(selkie completion bash)\n"
                "  selkie completion zsh > ~/.zfunc/_selkie\n"
                "  selkie completion fish > ~/.config/fish/completions/selkie.fish\n",
    .run = run_completion,
};
