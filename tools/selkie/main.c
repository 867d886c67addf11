/* The command `selkie`: finds the sub-command, lets its table parse the rest, and runs it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <omp.h>

#include "defs/fields.h"
#include "tool.h"

const tool_command *const commands[] = {
    &run_command,   &sweep_command,      &check_command,  &render_command,     &plot_command,   &convert_command,
    &mesh_command,  &whitewater_command, &info_command,   &list_command,       &splash_command, &reproduce_command,
    &basis_command, &doctor_command,     &schema_command, &completion_command, &studio_command, NULL};
enum { command_count = sizeof commands / sizeof *commands - 1 };

int complain(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* File names and values may hold control characters; a message stays one line. */
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    fflush(stdout);
    fprintf(stderr, "selkie: %s\n", line);
    return EXIT_BAD_INPUT;
}

static char scene_of_errors[1024];

void complain_of_scene(const char *path)
{
    snprintf(scene_of_errors, sizeof scene_of_errors, "%s", path);
}

/* Does a message begin with a key of scenes, such as "liquids[0].shape.file: ..."? Files that the world opens are named
 * so; the reader of scenes puts file and line in front by itself. */
static int begins_with_key(const char *message)
{
    const size_t length = strcspn(message, ".[: ");
    for (int f = 0; f < sk_scene_struct.field_count; f++)
        if (strlen(sk_scene_struct.fields[f].key) == length && !strncmp(message, sk_scene_struct.fields[f].key, length))
            return message[length] && message[length] != ' ';
    return 0;
}

int complain_error(const selkie_error *error)
{
    const char *message = error->message[0] ? error->message : selkie_code_name(error->code);
    if (scene_of_errors[0] && begins_with_key(message))
        complain("%s: %s", scene_of_errors, message);
    else
        complain("%s", message);
    switch (error->code) {
    case SELKIE_OK:
    case SELKIE_ERROR_INTERNAL:
        return EXIT_INTERNAL;
    case SELKIE_ERROR_DIVERGED:
        return EXIT_DIVERGED;
    case SELKIE_ERROR_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_BAD_INPUT;
    }
}

static void print_help(FILE *out)
{
    fprintf(out, "usage: selkie COMMAND [arguments]\n\n"
                 "Simulates liquids from scene files, in 2D and 3D: particles on a sparse grid\n"
                 "(FLIP, APIC, PIC) with volume conservation or unilateral pressure, SPH,\n"
                 "elastoplastic points (rubber, clay, sand), and reduced 2D fluids of modes; with\n"
                 "rigid and soft bodies, heat, surface tension and learned splashes.\n\ncommands:\n");
    for (int i = 0; i < command_count; i++)
        fprintf(out, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\noptions:\n"
                 "  --version               print the version\n"
                 "  -h, --help              print this; 'selkie COMMAND --help' describes one command,\n"
                 "                          'selkie run --help' also names all keys of scene files\n"
                 "\nexamples:\n"
                 "  selkie list\n"
                 "  selkie run double_dam_2d --out out/dam\n"
                 "  selkie render out/dam\n"
                 "\nexit codes: 0 good, 1 internal error, 2 bad input, 3 the simulation diverged, 130 interrupted\n");
}

static const tool_command *find_command(const char *name)
{
    for (int i = 0; i < command_count; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static int complain_unknown_command(const char *name)
{
    const char *names[command_count];
    for (int i = 0; i < command_count; i++)
        names[i] = commands[i]->name;
    const char *meant = nearest_word(name, names, command_count);
    if (meant)
        return complain("there is no command '%s'; did you mean '%s'? 'selkie --help' lists all", name, meant);
    return complain("there is no command '%s'; 'selkie --help' lists all", name);
}

/* A failed write (a full disk behind '>') is an error. A closed pipe (`| head`) is not. */
static int close_output(int code)
{
    struct stat status;
    int failed = fflush(stdout) || ferror(stdout);
    if (failed && !(!fstat(STDOUT_FILENO, &status) && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))) {
        fprintf(stderr, "selkie: the output could not be written\n");
        return code == EXIT_GOOD ? EXIT_BAD_INPUT : code;
    }
    return code;
}

/* Waiting threads spin. That is fast on idle cores and very slow on shared ones: a spinning thread occupies the core
 * that the others need. The runtime reads its environment before main(), so on a busy machine without such a setting
 * the command starts itself once more with a short spin. */
static void wait_politely(char **argv)
{
    double load;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getloadavg(&load, 1) != 1 || cores < 2 ||
        load < 0.7 * (double)cores)
        return;
    if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
        execv("/proc/self/exe", argv); /* on failure the command continues unchanged */
}

/* --threads also limits the loops of readers and writers, which take the number from OpenMP. */
static void limit_threads(const tool_command *command, const tool_arguments *arguments)
{
    for (int i = 0; i < command->option_count; i++)
        if (!strcmp(command->options[i].name, "threads") && arguments->values[i].given)
            omp_set_num_threads((int)arguments->values[i].integer);
}

static int run_command_with(const tool_command *command, const tool_arguments *arguments)
{
    limit_threads(command, arguments);
    return command->run(arguments);
}

int main(int argc, char **argv)
{
    wait_politely(argv);
    /* A file over the size limit (ulimit -f) is then a failed write, not a signal. */
    signal(SIGXFSZ, SIG_IGN);

    if (argc < 2) {
        complain("a command is missing; 'selkie --help' lists them");
        return EXIT_BAD_INPUT;
    }
    const char *first = argv[1];
    if (!strcmp(first, "--version")) {
        printf("selkie %s\n", SELKIE_VERSION);
        return close_output(EXIT_GOOD);
    }
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || (!strcmp(first, "help") && argc == 2)) {
        print_help(stdout);
        return close_output(EXIT_GOOD);
    }

    /* The command. */
    int help_word = !strcmp(first, "help");
    const tool_command *command = find_command(help_word ? argv[2] : first);
    if (!command) {
        if (first[0] == '-')
            return complain("there is no option '%s' before a command; see 'selkie --help'", first);
        return complain_unknown_command(help_word ? argv[2] : first);
    }

    /* Its options. */
    tool_arguments arguments = {0};
    int help = help_word;
    char message[512];
    int code = EXIT_GOOD;
    if (!help_word && options_parse(command, argc - 2, argv + 2, &arguments, &help, message, sizeof message))
        code = complain("%s", message);
    else if (help)
        options_print_help(command, stdout);
    else
        code = run_command_with(command, &arguments);
    options_free(&arguments);
    return close_output(code);
}
