/* Command-line options from tables.
 *
 * Each command has one table of options. The parser and the help text use the same
 * table, so they agree. Values are in an array beside the table: option i has value
 * i.
 */
#ifndef SELKIE_TOOL_OPTIONS_H
#define SELKIE_TOOL_OPTIONS_H

#include <stdio.h>

typedef enum option_kind {
    OPTION_FLAG,    /* --force */
    OPTION_TEXT,    /* --out DIR */
    OPTION_LIST,    /* --set A --set B: may be repeated */
    OPTION_INTEGER, /* --threads 4, within least..most */
    OPTION_NUMBER,  /* --end 0.5, within least..most */
    OPTION_CHOICE   /* --style surface, one of `choices` */
} option_kind;

typedef struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* short form, 0 = none */
    option_kind kind;
    const char *value; /* name of its value in the help; NULL for flags */
    double least, most;
    const char *const *choices; /* ends with NULL */
    const char *help;
} option_spec;

typedef struct option_value {
    int given;         /* how many times */
    const char *text;  /* as written */
    const char **list; /* OPTION_LIST: all of them */
    long integer;      /* OPTION_INTEGER; OPTION_CHOICE: its index */
    double number;
} option_value;

enum { MAX_OPTIONS = 32 };

typedef struct tool_arguments {
    option_value values[MAX_OPTIONS];
    const char **operands;
    int operand_count;
} tool_arguments;

typedef struct tool_command {
    const char *name;
    const char *synopsis; /* operands as the help shows them */
    int least_operands, most_operands;
    const char *summary;     /* one line */
    const char *description; /* paragraphs of the help */
    const option_spec *options;
    int option_count;
    const char *const *words;     /* what an operand may be, ends with NULL; NULL = see the synopsis */
    const char *examples;         /* lines, may be NULL */
    void (*more_help)(FILE *out); /* printed after the options, may be NULL */
    int (*run)(const tool_arguments *arguments);
} tool_command;

/* Returns 0, or -1 with a one-line error in `message`. *help is set by --help. The strings of `arguments` are those of
 * argv; release the rest with options_free(). */
int options_parse(const tool_command *command, int argument_count, char **argument_values, tool_arguments *arguments,
                  int *help, char *message, size_t message_size);
void options_free(tool_arguments *arguments);

void options_print_help(const tool_command *command, FILE *out);
/* Prints `text` from the current column, wrapped at words to a width of 78, continued at `indent`. */
void print_wrapped(FILE *out, const char *text, int column, int indent);

/* The candidate that differs least from `word`, NULL if none is near enough. */
const char *nearest_word(const char *word, const char *const *candidates, int count);

#endif
