/* `selkie studio`: watch and steer a scene in the browser. */
#define _GNU_SOURCE
#include "tool.h"

#include "selkie_config.h"

enum { studio_port, studio_no_browser, studio_at_once, studio_threads, studio_runs, studio_option_count };

static const option_spec studio_options[] = {
    [studio_port] = {.name = "port",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 0,
                     .most = 65535,
                     .help = "listen on this port of 127.0.0.1; 0, the default, takes any that is free"},
    [studio_no_browser] = {.name = "no-browser", .kind = OPTION_FLAG, .help = "print the link, and open no browser"},
    [studio_at_once] = {.name = "run", .kind = OPTION_FLAG, .help = "run the scene as soon as a page shows it"},
    [studio_threads] = {.name = "threads",
                        .letter = 'j',
                        .kind = OPTION_INTEGER,
                        .value = "N",
                        .least = 1,
                        .most = 1024,
                        .help = "number of threads of the simulation (all cores)"},
    [studio_runs] = {.name = "runs",
                     .kind = OPTION_TEXT,
                     .value = "DIR",
                     .help = "offer the runs that lie in this folder (out)"},
};

#if SELKIE_HAVE_JSON && SELKIE_HAVE_WEBSOCKETS

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "studio_run.h"
#include "studio_server.h"
#include "studio_simulation.h"

static studio_server *running; /* for the signal handler */

static void end(int signal)
{
    (void)signal;
    if (running)
        studio_server_stop(running);
}

static int make_token(char token[STUDIO_TOKEN + 1])
{
    unsigned char bytes[STUDIO_TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* The name of SCENE in the list; a file that is not in it is added. On failure prints the error and returns NULL. */
static const char *name_in_list(known_scenes *scenes, const char *wanted)
{
    char *path = find_scene(wanted);
    if (!path)
        return NULL;
    for (size_t i = 0; i < scenes->count; i++)
        if (strcmp(scenes->items[i].path, path) == 0) {
            free(path);
            return scenes->items[i].name;
        }
    known_scene *longer = realloc(scenes->items, sizeof *longer * (scenes->count + 1));
    char *name = scene_name(path);
    if (longer)
        scenes->items = longer;
    if (!longer || !name) {
        free(path);
        free(name);
        complain("no memory");
        return NULL;
    }
    /* A name of the list with a folder never equals a bare one. */
    scenes->items[scenes->count++] = (known_scene){path, name, name};
    return name;
}

/* Starts the browser of the desktop, where there is one, as a process that nobody waits for. */
static void open_browser(const char *link)
{
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout) ||
                !freopen("/dev/null", "w", stderr))
                _exit(1);
            execlp("xdg-open", "xdg-open", link, (char *)NULL);
            execlp("open", "open", link, (char *)NULL);
        }
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static int serve(const tool_arguments *arguments, known_scenes *scenes, const known_scenes *runs, const char *first)
{
    char token[STUDIO_TOKEN + 1], problem[256], link[128];
    studio_exchange exchange;
    if (make_token(token) || studio_exchange_open(&exchange))
        return complain("no random numbers, or no memory");

    /* The server. */
    const option_value *values = arguments->values;
    const studio_server_options options = {
        .port = values[studio_port].given ? (int)values[studio_port].integer : 0,
        .token = token,
        .scenes = scenes,
        .runs = runs,
        .exchange = &exchange,
    };
    studio_server *server = studio_server_open(&options, problem, sizeof problem);
    if (!server) {
        studio_exchange_close(&exchange);
        return complain("%s", problem);
    }
    running = server;
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGPIPE, SIG_IGN);

    /* The simulation. */
    studio_simulation *simulation = studio_simulation_start(
        &exchange, &(studio_simulation_options){
                       .scenes = scenes,
                       .runs = runs,
                       .first = first,
                       .runs_at_once = values[studio_at_once].given,
                       .threads = values[studio_threads].given ? (int)values[studio_threads].integer : 0,
                   });
    snprintf(link, sizeof link, "http://127.0.0.1:%d/?token=%s", studio_server_port(server), token);
    printf("%s\n", link);
    fflush(stdout);
    if (!values[studio_no_browser].given)
        open_browser(link);
    studio_server_run(server);

    studio_simulation_stop(simulation);
    running = NULL;
    studio_server_close(server);
    studio_exchange_close(&exchange);
    return EXIT_GOOD;
}

static int run_studio(const tool_arguments *arguments)
{
    known_scenes scenes;
    /* Threads of clang's OpenMP spin for 200 ms after their work: between the steps of a scene that runs at real time
     * they would take the cores that the browser draws with. Within a step the pauses are far shorter than 1 ms. */
    setenv("KMP_BLOCKTIME", "1", 0);
    const char *first = NULL;
    find_known_scenes(&scenes);
    if (arguments->operand_count && !(first = name_in_list(&scenes, arguments->operands[0]))) {
        free_known_scenes(&scenes);
        return EXIT_BAD_INPUT;
    }
    known_scenes runs;
    find_runs(arguments->values[studio_runs].given ? arguments->values[studio_runs].text : "out", &runs);
    const int code = serve(arguments, &scenes, &runs, first);
    free_known_scenes(&runs);
    free_known_scenes(&scenes);
    return code;
}

#else

static int run_studio(const tool_arguments *arguments)
{
    (void)arguments;
    return complain("this build has no studio: install libwebsockets-dev and libjson-c-dev and build again");
}

#endif

const tool_command studio_command = {
    .name = "studio",
    .synopsis = "[SCENE]",
    .least_operands = 0,
    .most_operands = 1,
    .summary = "watch and steer a scene in the browser",
    .description = "Starts a server on 127.0.0.1, prints the link of the studio and opens it in the browser. The page "
                   "lists the scenes, runs them, shows them live, and lets you push the liquid, tilt gravity, add "
                   "liquid, obstacles and taps, and edit the scene. A run can be downloaded as a scene file that "
                   "'selkie run' replays.\n"
                   "\nThe link holds a token; whoever has it can use the studio. Ctrl-C ends it.",
    .options = studio_options,
    .option_count = studio_option_count,
    .examples = "  selkie studio double_dam_2d --run\n"
                "  selkie studio --no-browser --port 8080\n",
    .run = run_studio,
};
