#define _GNU_SOURCE
#include "run_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/folder.h"

enum { most_columns = 128 };

/* --- Opening --- */

/* What the tables are opened with. */
typedef struct opening {
    const run_folder *folder;
    const selkie_world *world;
    int continued;
} opening;

/* Opens one table: a new one, or an old one cut to the world's step. */
static selkie_code open_table(const opening *of, const char *name, int column_count, const char *const *columns,
                              sk_table_writer **table, selkie_error *error)
{
    char *path = run_folder_path(of->folder, "%s", name);
    if (!path)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "out of memory");
    if (of->continued && !sk_file_exists(path))
        fprintf(stderr, "selkie: warning: %s is missing: it is started again, without the rows up to step %lld\n", path,
                (long long)selkie_world_step_count(of->world));
    const selkie_code code =
        of->continued ? sk_table_resume(path, column_count, columns, selkie_world_step_count(of->world), table, error)
                      : sk_table_create(path, column_count, columns, table, error);
    free(path);
    return code;
}

/* The columns of phases of a table that is continued: a change since the start may have added or removed phases.
 * Returns 0 if the table cannot be read; opening it says why. */
static int read_phases(run_tables *tables, const run_folder *folder)
{
    char *path = run_folder_path(folder, "stats.csv"), *line = NULL;
    size_t room = 0;
    FILE *file = path ? fopen(path, "r") : NULL;
    const int read = file && getline(&line, &room, file) > 0;
    int column = 0;
    tables->phase_count = 0;
    for (char *rest = line, *name; read && (name = strtok_r(rest, ",\r\n", &rest)) != NULL; column++)
        if (column >= selkie_statistic_count() && tables->phase_count < SELKIE_MAX_PHASES)
            snprintf(tables->phases[tables->phase_count++], phase_name_length, "%s", name);
    if (file)
        fclose(file);
    free(line);
    free(path);
    return tables->phase_count > 0;
}

/* The table of statistics, then a column of milliseconds a phase. */
static selkie_code open_stats(run_tables *tables, const opening *of, selkie_error *error)
{
    const char *columns[most_columns + SELKIE_MAX_PHASES];
    int count = selkie_statistic_count();
    for (int column = 0; column < count; column++)
        columns[column] = selkie_statistic_info(column)->name;
    if (!of->continued || !read_phases(tables, of->folder)) {
        tables->phase_count = selkie_world_phase_count(of->world);
        for (int phase = 0; phase < tables->phase_count; phase++)
            snprintf(tables->phases[phase], phase_name_length, "%s_ms", selkie_world_phase_name(of->world, phase));
    }
    for (int phase = 0; phase < tables->phase_count; phase++)
        columns[count++] = tables->phases[phase];
    return open_table(of, "stats.csv", count, columns, &tables->stats, error);
}

static selkie_code open_probes(run_tables *tables, const opening *of, selkie_error *error)
{
    const int count = selkie_world_probe_column_count(of->world);
    const char **columns = calloc((size_t)count + 2, sizeof *columns);
    tables->probe_row = calloc((size_t)count + 2, sizeof *tables->probe_row);
    if (!columns || !tables->probe_row) {
        free(columns);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "out of memory");
    }
    columns[0] = "step";
    columns[1] = "time";
    for (int column = 0; column < count; column++)
        columns[2 + column] = selkie_world_probe_column_name(of->world, column);
    const selkie_code code = open_table(of, "probes.csv", count + 2, columns, &tables->probes, error);
    free(columns);
    return code;
}

static const char *const body_columns[] = {"step", "time", "frame", "body", "x",  "y",  "z",  "qw",
                                           "qx",   "qy",   "qz",    "vx",   "vy", "vz", "wx", "wy",
                                           "wz",   "fx",   "fy",    "fz",   "tx", "ty", "tz"};
enum { body_column_count = sizeof body_columns / sizeof *body_columns };

selkie_code run_tables_open(run_tables *tables, const run_folder *folder, const selkie_world *world, int continued,
                            selkie_error *error)
{
    const opening of = {folder, world, continued};
    const selkie_scene *scene = selkie_world_scene(world);
    SK_TRY(open_stats(tables, &of, error));
    SK_TRY(open_probes(tables, &of, error));
    int has_bodies = scene->body_count > 0 || selkie_world_body_count(world) > 0;
    for (int n = 0; n < scene->change_count; n++)
        has_bodies |= scene->changes[n].kind == SELKIE_CHANGE_BODY;
    if (has_bodies)
        SK_TRY(open_table(&of, "bodies.csv", body_column_count, body_columns, &tables->bodies, error));
    return continued ? SELKIE_OK : run_tables_write_bodies(tables, world, error);
}

/* --- Rows --- */

selkie_code run_tables_write_bodies(run_tables *tables, const selkie_world *world, selkie_error *error)
{
    const selkie_statistics *s = selkie_world_statistics(world);
    for (int b = 0; tables->bodies && b < selkie_world_body_count(world); b++) {
        selkie_body_state body;
        double row[body_column_count] = {(double)s->step, selkie_world_time(world), (double)selkie_world_frame(world),
                                         b};
        selkie_world_body(world, b, &body);
        memcpy(row + 4, body.position, sizeof body.position);
        memcpy(row + 7, body.quaternion, sizeof body.quaternion);
        memcpy(row + 11, body.velocity, sizeof body.velocity);
        memcpy(row + 14, body.angular_velocity, sizeof body.angular_velocity);
        memcpy(row + 17, body.force, sizeof body.force);
        memcpy(row + 20, body.torque, sizeof body.torque);
        SK_TRY(sk_table_row(tables->bodies, row, error));
    }
    return SELKIE_OK;
}

/* ms that the phase of a column took in the last step; 0 where the world has it no more. */
static double phase_time(const run_tables *tables, const selkie_world *world, int column)
{
    const size_t length = strlen(tables->phases[column]) - strlen("_ms");
    for (int phase = 0; phase < selkie_world_phase_count(world); phase++) {
        const char *name = selkie_world_phase_name(world, phase);
        if (strlen(name) == length && strncmp(name, tables->phases[column], length) == 0)
            return selkie_world_statistics(world)->phase_ms[phase];
    }
    return 0.0;
}

selkie_code run_tables_write(run_tables *tables, const selkie_world *world, selkie_error *error)
{
    const selkie_statistics *s = selkie_world_statistics(world);
    double row[most_columns + SELKIE_MAX_PHASES];
    const int count = selkie_statistic_count();
    for (int column = 0; column < count; column++)
        row[column] = selkie_statistic_value(s, column);
    for (int column = 0; column < tables->phase_count; column++)
        row[count + column] = phase_time(tables, world, column);
    tables->probe_row[0] = (double)s->step;
    tables->probe_row[1] = s->time;
    for (int column = 0; column < selkie_world_probe_column_count(world); column++)
        tables->probe_row[2 + column] = selkie_world_probe_value(world, column);
    SK_TRY(sk_table_row(tables->stats, row, error));
    return sk_table_row(tables->probes, tables->probe_row, error);
}

selkie_code run_tables_close(run_tables *tables, selkie_error *error)
{
    sk_table_writer **const all[] = {&tables->stats, &tables->probes, &tables->bodies};
    selkie_code code = SELKIE_OK;
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        const selkie_code closed = sk_table_close(all[t], code ? NULL : error);
        code = code ? code : closed;
    }
    free(tables->probe_row);
    tables->probe_row = NULL;
    return code;
}
