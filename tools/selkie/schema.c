/* `selkie schema`: the JSON Schema of scene files. */
#include <stdio.h>

#include <selkie/statistics.h>

#include "defs/describe.h"
#include "tool.h"

enum { schema_statistics, schema_keys, schema_option_count };

static const option_spec schema_options[] = {
    [schema_statistics] = {.name = "statistics",
                           .kind = OPTION_FLAG,
                           .help = "print the columns of stats.csv instead, as a table in Markdown"},
    [schema_keys] = {.name = "keys",
                     .kind = OPTION_FLAG,
                     .help = "print all keys of scene files instead, with defaults and meanings, as plain text"},
};

/* The table in docs/manual/output.md. */
static int print_statistics(void)
{
    printf("| column of `stats.csv` | unit | meaning |\n| --- | --- | --- |\n");
    for (int row = 0; row < selkie_statistic_count(); row++) {
        const selkie_statistic *info = selkie_statistic_info(row);
        printf("| `%s` | %s | %s |\n", info->name, info->unit, info->meaning);
    }
    printf("| `PHASE_ms` | ms | wall time of each phase of the step, one column a phase |\n");
    return EXIT_GOOD;
}

static int run_schema(const tool_arguments *arguments)
{
    if (arguments->values[schema_statistics].given)
        return print_statistics();
    if (arguments->values[schema_keys].given)
        return sk_scene_keys_write(stdout) ? complain("the keys could not be written") : EXIT_GOOD;
    if (sk_scene_schema_write(stdout))
        return complain("the schema could not be written");
    return EXIT_GOOD;
}

const tool_command schema_command = {
    .name = "schema",
    .synopsis = "",
    .options = schema_options,
    .option_count = schema_option_count,
    .summary = "print keys of scene files, their JSON Schema, or columns of stats.csv",
    .description =
        "Prints the JSON Schema of scene files, made from the same table that scenes are read with. An editor "
        "that uses it completes keys and marks mistakes. With --keys it prints the keys for people, with --statistics "
        "the columns of stats.csv.",
    .examples = "  selkie schema > selkie.schema.json\n"
                "  selkie schema --keys | less\n",
    .run = run_schema,
};
