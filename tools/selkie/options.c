#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "defs/text.h"

/* --- What was meant --- */

const char *nearest_word(const char *word, const char *const *candidates, int count)
{
    const char *best = NULL;
    int length = (int)strlen(word);
    int best_distance = length / 3 + 2; /* farther off than this is another word */
    for (int i = 0; i < count; i++) {
        int distance = sk_edit_distance(word, candidates[i]);
        /* A prefix of the candidate is a good guess, whatever its length. */
        if (length >= 2 && !strncmp(word, candidates[i], (size_t)length))
            distance = 1;
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}

/* --- Parsing --- */

static int complain_unknown_option(const tool_command *command, const char *word, size_t length, char *message,
                                   size_t size)
{
    const char *names[MAX_OPTIONS + 1];
    int count = 0;
    for (; count < command->option_count; count++)
        names[count] = command->options[count].name;
    names[count++] = "help";
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *meant = nearest_word(name, names, count);
    if (meant)
        snprintf(message, size, "unknown option --%s of 'selkie %s'; did you mean --%s? See 'selkie %s --help'", name,
                 command->name, meant, command->name);
    else
        snprintf(message, size, "unknown option --%s of 'selkie %s'; see 'selkie %s --help'", name, command->name,
                 command->name);
    return -1;
}

static int read_choice(const option_spec *spec, option_value *value, char *message, size_t size)
{
    char all[256] = "";
    for (int i = 0; spec->choices[i]; i++) {
        if (!strcmp(spec->choices[i], value->text)) {
            value->integer = i;
            return 0;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", spec->choices[i]);
    }
    snprintf(message, size, "--%s '%s' is not one of %s", spec->name, value->text, all);
    return -1;
}

/* Reads one value of an option that was given with `text`. */
static int read_value(const option_spec *spec, option_value *value, const char *text, char *message, size_t size)
{
    value->text = text;
    char *end = NULL;
    errno = 0;
    switch (spec->kind) {
    case OPTION_LIST: {
        const char **grown = realloc(value->list, sizeof *grown * (size_t)(value->given + 1));
        if (!grown) {
            snprintf(message, size, "out of memory");
            return -1;
        }
        grown[value->given] = text;
        value->list = grown;
        break;
    }
    case OPTION_INTEGER:
        value->integer = strtol(text, &end, 10);
        if (errno || end == text || *end || (double)value->integer < spec->least ||
            (double)value->integer > spec->most) {
            snprintf(message, size, "--%s '%s' is not a whole number from %.0f to %.0f", spec->name, text, spec->least,
                     spec->most);
            return -1;
        }
        break;
    case OPTION_NUMBER:
        value->number = strtod(text, &end);
        if (end == text || *end || !isfinite(value->number) || value->number < spec->least ||
            value->number > spec->most) {
            snprintf(message, size, "--%s '%s' is not a number from %g to %g", spec->name, text, spec->least,
                     spec->most);
            return -1;
        }
        break;
    case OPTION_CHOICE:
        if (read_choice(spec, value, message, size))
            return -1;
        break;
    case OPTION_FLAG:
    case OPTION_TEXT:
        break;
    }
    value->given++;
    return 0;
}

/* The option of a letter, or -1. */
static int find_letter(const tool_command *command, char letter)
{
    for (int i = 0; i < command->option_count; i++)
        if (command->options[i].letter && command->options[i].letter == letter)
            return i;
    return -1;
}

/* "-qj4": takes flags off the front of the letters at *rest. Returns the option of the first other letter, with *rest
 * behind it; -2 if all were flags, -1 on an unknown letter. */
static int take_flags(const tool_command *command, const char **rest, tool_arguments *arguments)
{
    while (**rest) {
        int index = find_letter(command, **rest);
        if (index < 0)
            return -1;
        ++*rest;
        if (command->options[index].kind != OPTION_FLAG)
            return index;
        arguments->values[index].given++;
    }
    return -2;
}

/* Takes the option at argv[*position] and, where it needs one, the value after it. */
static int parse_option(const tool_command *command, int argc, char **argv, int *position, tool_arguments *arguments,
                        char *message, size_t size)
{
    const char *word = argv[*position];
    const char *attached = NULL; /* the value of --name=value or -nvalue */
    int index = -1;

    /* --name or -n, with or without an attached value. */
    if (word[1] == '-') {
        const char *name = word + 2;
        size_t length = strcspn(name, "=");
        attached = name[length] ? name + length + 1 : NULL;
        for (int i = 0; i < command->option_count; i++)
            if (strlen(command->options[i].name) == length && !strncmp(command->options[i].name, name, length))
                index = i;
        if (index < 0)
            return complain_unknown_option(command, name, length, message, size);
    } else {
        const char *rest = word + 1;
        index = take_flags(command, &rest, arguments);
        if (index == -1) {
            snprintf(message, size, "unknown option -%c of 'selkie %s'; see 'selkie %s --help'", *rest, command->name,
                     command->name);
            return -1;
        }
        if (index < 0)
            return 0;
        attached = *rest ? rest : NULL;
    }

    /* Flags take no value. */
    const option_spec *spec = &command->options[index];
    option_value *value = &arguments->values[index];
    if (spec->kind == OPTION_FLAG) {
        if (attached) {
            snprintf(message, size, "--%s takes no value, it was given '%s'", spec->name, attached);
            return -1;
        }
        value->given++;
        return 0;
    }

    /* Others take one, once unless they are lists. */
    if (value->given && spec->kind != OPTION_LIST) {
        snprintf(message, size, "--%s was given twice", spec->name);
        return -1;
    }
    if (!attached) {
        if (*position + 1 >= argc) {
            snprintf(message, size, "--%s needs a value: --%s %s", spec->name, spec->name, spec->value);
            return -1;
        }
        attached = argv[++*position];
    }
    return read_value(spec, value, attached, message, size);
}

int options_parse(const tool_command *command, int argc, char **argv, tool_arguments *arguments, int *help,
                  char *message, size_t size)
{
    memset(arguments, 0, sizeof *arguments);
    *help = 0;
    arguments->operands = calloc((size_t)argc + 1, sizeof *arguments->operands);
    if (!arguments->operands) {
        snprintf(message, size, "out of memory");
        return -1;
    }

    /* Options and operands in any order; after -- only operands. */
    int only_operands = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_operands || word[0] != '-' || !word[1]) {
            arguments->operands[arguments->operand_count++] = word;
        } else if (!strcmp(word, "--")) {
            only_operands = 1;
        } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            *help = 1;
            return 0;
        } else if (parse_option(command, argc, argv, &i, arguments, message, size)) {
            return -1;
        }
    }

    /* Number of operands. */
    if (arguments->operand_count < command->least_operands) {
        snprintf(message, size, "'selkie %s' needs %s; see 'selkie %s --help'", command->name, command->synopsis,
                 command->name);
        return -1;
    }
    if (command->most_operands >= 0 && arguments->operand_count > command->most_operands) {
        snprintf(message, size, "'selkie %s' takes no argument '%s'; see 'selkie %s --help'", command->name,
                 arguments->operands[command->most_operands], command->name);
        return -1;
    }
    return 0;
}

void options_free(tool_arguments *arguments)
{
    for (int i = 0; i < MAX_OPTIONS; i++)
        free(arguments->values[i].list);
    free(arguments->operands);
    memset(arguments, 0, sizeof *arguments);
}

/* --- Help --- */

enum { help_column = 26, help_width = 78 };

void print_wrapped(FILE *out, const char *text, int column, int indent)
{
    int at_start = 1;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (!at_start && column + 1 + length > help_width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            at_start = 1;
        }
        column += fprintf(out, "%s%.*s", at_start ? "" : " ", length, text);
        at_start = 0;
        text += length;
        if (*text == '\n') {
            fprintf(out, "\n%*s", text[1] == '\n' ? 0 : indent, "");
            column = indent;
            at_start = 1;
        }
        text += *text != 0;
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const option_spec *spec)
{
    char left[80];
    int length = snprintf(left, sizeof left, "  --%s", spec->name);
    if (spec->letter)
        length = snprintf(left, sizeof left, "  -%c, --%s", spec->letter, spec->name);
    if (spec->value)
        length += snprintf(left + length, sizeof left - (size_t)length, " %s", spec->value);
    fputs(left, out);
    if (length + 2 > help_column) {
        fprintf(out, "\n%*s", help_column, "");
    } else {
        fprintf(out, "%*s", help_column - length, "");
    }
    print_wrapped(out, spec->help, help_column, help_column);
}

void options_print_help(const tool_command *command, FILE *out)
{
    fprintf(out, "usage: selkie %s%s%s%s\n\n", command->name, *command->synopsis ? " " : "", command->synopsis,
            command->option_count ? " [options]" : "");
    print_wrapped(out, command->description, 0, 0);
    fprintf(out, "\noptions:\n");
    for (int i = 0; i < command->option_count; i++)
        print_option(out, &command->options[i]);
    option_spec help = {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "print this and leave"};
    print_option(out, &help);
    if (command->more_help)
        command->more_help(out);
    if (command->examples)
        fprintf(out, "\nexamples:\n%s", command->examples);
}
