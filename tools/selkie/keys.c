/* The keys of scene files in the help of the command, from the field table. */
#include <stdio.h>

#include "defs/describe.h"
#include "tool.h"

void print_key_help(FILE *out)
{
    enum { room = 64, column = 14 };
    const sk_struct *structs[room];
    int count = sk_scene_structs(structs, room);
    fprintf(out, "\nkeys of scene files, also for --set ('selkie schema --keys' explains them):\n");
    for (int s = 0; s < count; s++) {
        char names[4096];
        size_t used = 0;
        for (int i = 0; i < structs[s]->field_count && used < sizeof names; i++)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", structs[s]->fields[i].key);
        int length = fprintf(out, "  %s", structs[s]->name);
        fprintf(out, length < column ? "%*s" : "\n%*s", length < column ? column - length : column, "");
        print_wrapped(out, names, column, column);
    }
}
