/* `selkie schema`: the JSON Schema of scene files. */
#include <stdio.h>

#include "defs/describe.h"
#include "tool.h"

static int run_schema(const tool_arguments *arguments)
{
    (void)arguments;
    if (sk_scene_schema_write(stdout))
        return complain("the schema could not be written");
    return EXIT_GOOD;
}

const tool_command schema_command = {
    .name = "schema",
    .synopsis = "",
    .summary = "print the JSON Schema of scene files",
    .description =
        "Prints the JSON Schema of scene files, made from the same table that scenes are read with. An editor "
        "that is told of it completes keys and marks mistakes.",
    .examples = "  selkie schema > selkie.schema.json\n",
    .run = run_schema,
};
