/* `selkie splash`: samples, training and use of models of splashes. */
#include "splash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

enum {
    splash_dimension,
    splash_out,
    splash_runs,
    splash_ratio,
    splash_keep,
    splash_scales,
    splash_seconds,
    splash_setup_option,
    splash_template,
    splash_recipe,
    splash_steps,
    splash_batch,
    splash_width,
    splash_samples_option,
    splash_model_option,
    splash_rate,
    splash_threshold,
    splash_force,
    splash_seed,
    splash_threads,
    splash_quiet,
    splash_option_count
};

static const char *const setups[] = {"drops", "dams", "strings", NULL};
static const char *const recipes[] = {"default", "paper", NULL};
static const char *const verbs[] = {"data", "train", "add", "judge", NULL};

static const option_spec splash_options[] = {
    [splash_dimension] = {.name = "dimension",
                          .kind = OPTION_INTEGER,
                          .value = "N",
                          .least = 2,
                          .most = 3,
                          .help = "data: 2 or 3; default 2"},
    [splash_out] = {.name = "out",
                    .letter = 'o',
                    .kind = OPTION_TEXT,
                    .value = "DIR",
                    .help = "folder of the samples, or of the model"},
    [splash_runs] = {.name = "runs",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 1,
                     .most = 1000,
                     .help =
                         "data: number of simulations; default 48, in 3D 32. Two of ten are held out, one calibrates"},
    [splash_ratio] = {.name = "ratio",
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 2,
                      .most = 8,
                      .help = "data: cell of the coarse runs that the model is for, over the cell of the template; "
                              "default 2, in 3D 4"},
    [splash_keep] = {.name = "keep",
                     .kind = OPTION_NUMBER,
                     .value = "SHARE",
                     .least = 1e-6,
                     .most = 1,
                     .help = "data: share of the candidates without a splash that are kept; default 0.1, in 3D 0.03. "
                             "Samples carry the weight 1/SHARE"},
    [splash_scales] = {.name = "scales",
                       .kind = OPTION_TEXT,
                       .value = "LIST",
                       .help = "data: factors of the template's lengths, separated by commas; runs take them in turn. "
                               "Default 1,0.5,2, in 3D 1,0.3"},
    [splash_seconds] = {.name = "seconds",
                        .kind = OPTION_NUMBER,
                        .value = "S",
                        .least = 0,
                        .most = 1e9,
                        .help = "data: begin no run after S seconds; the runs that are done make the samples"},
    [splash_setup_option] = {.name = "setup",
                             .kind = OPTION_CHOICE,
                             .value = "NAME",
                             .choices = setups,
                             .help = "data: random drops, dams that break (SPH, 2D), or strings of liquid (2D); "
                                     "default drops"},
    [splash_template] = {.name = "template",
                         .kind = OPTION_TEXT,
                         .value = "SCENE",
                         .help = "data: scene that random drops are added to; default splash/templates/drops_2d or "
                                 "drops_3d"},
    [splash_recipe] = {.name = "recipe",
                       .kind = OPTION_CHOICE,
                       .value = "NAME",
                       .choices = recipes,
                       .help = "train: default, or paper for the networks of Um et al. 2018"},
    [splash_steps] = {.name = "steps",
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 1,
                      .most = 1000000,
                      .help = "train: steps of each network; default 1500 and 900, paper 3000 each"},
    [splash_batch] = {.name = "batch",
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 2,
                      .most = 100000,
                      .help = "train: samples of a step; default 1200, paper 5000"},
    [splash_width] = {.name = "width",
                      .kind = OPTION_INTEGER,
                      .value = "N",
                      .least = 2,
                      .most = 512,
                      .help = "train: outputs of the first layer, twice those of the second; default 32"},
    [splash_samples_option] = {.name = "samples",
                               .kind = OPTION_INTEGER,
                               .value = "N",
                               .least = 1,
                               .most = 1e12,
                               .help = "train: number of samples of the training runs that are used; default all. "
                                       "add: droplets for each particle that makes a splash; default 1"},
    [splash_model_option] =
        {.name = "model",
         .kind = OPTION_TEXT,
         .value = "FILE",
         .help = "add, judge: a model; default the one of Selkie, for add that of the run's scene where it has one"},
    [splash_rate] = {.name = "rate",
                     .kind = OPTION_NUMBER,
                     .value = "X",
                     .least = 0,
                     .most = 1e6,
                     .help = "add: factor of the rates; default 1"},
    [splash_threshold] = {.name = "threshold",
                          .kind = OPTION_NUMBER,
                          .value = "P",
                          .least = 0,
                          .most = 1,
                          .help = "add: only particles above this probability, of balanced classes, make splashes; "
                                  "default 0"},
    [splash_force] = {.name = "force",
                      .kind = OPTION_FLAG,
                      .help = "add: make droplets again that are there with the same options"},
    [splash_seed] = {.name = "seed",
                     .kind = OPTION_INTEGER,
                     .value = "N",
                     .least = 0,
                     .most = 1e9,
                     .help = "of all random numbers; default 1"},
    [splash_threads] = {.name = "threads",
                        .letter = 'j',
                        .kind = OPTION_INTEGER,
                        .value = "N",
                        .least = 1,
                        .most = 1024,
                        .help = "threads to use; default all cores"},
    [splash_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};
_Static_assert(sizeof splash_options / sizeof *splash_options == splash_option_count, "an option for each index");
_Static_assert((int)splash_option_count <= (int)MAX_OPTIONS, "room for each value");

/* Verbs that take an option; options for all verbs have no row. */
enum { for_data = 1, for_train = 2, for_add = 4, for_judge = 8 };
static const int verbs_of[splash_option_count] = {
    [splash_dimension] = for_data,
    [splash_out] = for_data | for_train,
    [splash_runs] = for_data,
    [splash_ratio] = for_data,
    [splash_keep] = for_data,
    [splash_scales] = for_data,
    [splash_seconds] = for_data,
    [splash_setup_option] = for_data,
    [splash_template] = for_data,
    [splash_recipe] = for_train,
    [splash_steps] = for_train,
    [splash_batch] = for_train,
    [splash_width] = for_train,
    [splash_samples_option] = for_train | for_add,
    [splash_model_option] = for_add | for_judge,
    [splash_rate] = for_add,
    [splash_threshold] = for_add,
    [splash_force] = for_add,
};

/* An option of another verb would have no effect. */
static int check_verb(const char *verb, const option_value *values)
{
    int own = 0;
    for (int v = 0; verbs[v]; v++)
        own |= strcmp(verb, verbs[v]) == 0 ? 1 << v : 0;
    if (!own)
        return complain("splash: %s is not known: must be data, train, add or judge", verb);
    for (int n = 0; n < splash_option_count; n++) {
        if (!values[n].given || !verbs_of[n] || verbs_of[n] & own)
            continue;
        char names[64] = "";
        for (int v = 0; verbs[v]; v++)
            if (verbs_of[n] >> v & 1)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " and " : "", verbs[v]);
        return complain("splash %s: --%s has no effect: it is for %s", verb, splash_options[n].name, names);
    }
    return 0;
}

/* Numbers separated by commas. Returns how many, 0 if the text holds anything else. */
static int read_scales(const char *text, double scales[8])
{
    int count = 0;
    while (count < 8) {
        char *end;
        scales[count] = strtod(text, &end);
        if (end == text || !(scales[count] > 0.0) || !isfinite(scales[count]) || (*end && *end != ','))
            return 0;
        count++;
        if (!*end)
            return count;
        text = end + 1;
    }
    return 0;
}

static int make_data(const option_value *values, uint64_t seed, int threads)
{
    const int dimension = values[splash_dimension].given ? (int)values[splash_dimension].integer : 2,
              solid = dimension == 3;
    const splash_setup setup =
        values[splash_setup_option].given ? (splash_setup)values[splash_setup_option].integer : SPLASH_DROPS;
    splash_data_options options = {
        .setup = setup,
        .out = values[splash_out].text,
        .template_scene = values[splash_template].given ? values[splash_template].text : NULL,
        .dimension = dimension,
        .runs = values[splash_runs].given ? (int)values[splash_runs].integer
                : solid                   ? 32
                                          : 48,
        .ratio = values[splash_ratio].given         ? (int)values[splash_ratio].integer
                 : solid || setup == SPLASH_STRINGS ? 4
                                                    : 2,
        .keep = values[splash_keep].given ? values[splash_keep].number
                : solid                   ? 0.03
                                          : 0.1,
        .seconds = values[splash_seconds].given ? fmax(values[splash_seconds].number, 1e-9) : 0.0,
        .seed = seed,
        .threads = threads,
        .quiet = values[splash_quiet].given};
    const char *scales = values[splash_scales].given ? values[splash_scales].text
                         : setup != SPLASH_DROPS     ? "1"
                         : solid                     ? "1,0.3"
                                                     : "1,0.5,2";
    options.scale_count = read_scales(scales, options.scales);
    if (!options.scale_count)
        return complain("splash data: --scales %s: must be one to eight numbers above 0, separated by commas", scales);
    return splash_make_data(&options);
}

static int add_to_run(const tool_arguments *arguments, uint64_t seed, int threads)
{
    const option_value *values = arguments->values;
    if (values[splash_samples_option].given && values[splash_samples_option].integer > 1000)
        return complain("splash add: --samples %lld: must be at most 1000",
                        (long long)values[splash_samples_option].integer);
    const splash_add_options options = {
        .folder = arguments->operand_count > 1 ? arguments->operands[1] : NULL,
        .model = values[splash_model_option].given ? values[splash_model_option].text : NULL,
        .samples = values[splash_samples_option].given ? (int)values[splash_samples_option].integer : 1,
        .rate = values[splash_rate].given ? values[splash_rate].number : 1.0,
        .threshold = values[splash_threshold].given ? values[splash_threshold].number : 0.0,
        .seed = seed,
        .threads = threads,
        .force = values[splash_force].given,
        .quiet = values[splash_quiet].given};
    return options.folder ? splash_add(&options) : complain("splash add: the folder of a run is missing");
}

static int run_splash(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    const char *verb = arguments->operands[0];
    const int threads = values[splash_threads].given ? (int)values[splash_threads].integer : omp_get_max_threads();
    const uint64_t seed = values[splash_seed].given ? (uint64_t)values[splash_seed].integer : 1;
    const int wrong = check_verb(verb, values);
    if (wrong)
        return wrong;
    if (strcmp(verb, "add") == 0)
        return add_to_run(arguments, seed, threads);
    if (strcmp(verb, "judge") == 0)
        return arguments->operand_count < 2
                   ? complain("splash judge: the folder of the samples is missing")
                   : splash_judge_model(arguments->operands[1],
                                        values[splash_model_option].given ? values[splash_model_option].text : NULL,
                                        threads, stdout);
    if (!values[splash_out].given)
        return complain("splash %s: --out DIR is missing", verb);
    if (strcmp(verb, "data") == 0)
        return make_data(values, seed, threads);
    if (strcmp(verb, "train") == 0) {
        if (arguments->operand_count < 2)
            return complain("splash train: the folder of the samples is missing");
        sk_splash_recipe recipe =
            sk_splash_default_recipe(values[splash_recipe].given && values[splash_recipe].integer);
        recipe.threads = threads;
        recipe.seed = seed;
        if (values[splash_steps].given)
            recipe.classifier_steps = recipe.modifier_steps = (int)values[splash_steps].integer;
        if (values[splash_batch].given)
            recipe.batch = (int)values[splash_batch].integer;
        if (values[splash_width].given)
            recipe.width = (int)values[splash_width].integer;
        if (values[splash_samples_option].given)
            recipe.samples = values[splash_samples_option].integer;
        return splash_train_model(arguments->operands[1], values[splash_out].text, &recipe, values[splash_quiet].given);
    }
    return complain("splash: %s is not known", verb);
}

const tool_command splash_command = {
    .name = "splash",
    .synopsis = "data|train|add|judge [DIR]",
    .least_operands = 1,
    .most_operands = 2,
    .summary = "make samples of splashes, train models of them, add droplets to runs",
    .description =
        "data simulates random drops on a fine grid and writes samples of splashes into --out; what is there is kept, "
        "so that an interrupted call goes on. train DIR learns a model from the samples in DIR and writes "
        "model.safetensors, report.csv and learning curves into --out; interrupted, it goes on too. add DIR makes "
        "droplets from the frames of the run in DIR and writes them beside these, as splash_NNNN.ply. judge DIR says "
        "how good a model is on the "
        "samples in DIR, a line of CSV for each split and for all. See docs/manual/splash.md.",
    .options = splash_options,
    .option_count = splash_option_count,
    .words = verbs,
    .examples = "  selkie splash data --dimension 2 --out out/samples\n"
                "  selkie splash train out/samples --out out/model\n"
                "  selkie splash add out/dam --samples 4\n"
                "  selkie splash judge out/samples\n",
    .run = run_splash,
};
