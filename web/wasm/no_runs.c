/* A page without a server has no folder of runs. */
#include "base/status.h"
#include "studio_run.h"

selkie_code studio_run_open(studio_run *run, const char *scene_path, selkie_error *error)
{
    (void)run, (void)scene_path;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "there are no runs here");
}

void studio_run_close(studio_run *run)
{
    (void)run;
}

selkie_code studio_run_read(studio_run *run, int *changed, selkie_error *error)
{
    (void)run;
    *changed = 0;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED, "there are no runs here");
}

studio_blob *studio_run_blob(studio_run *run, const studio_solids *solids, studio_frame_numbers numbers)
{
    (void)run, (void)solids, (void)numbers;
    return NULL;
}
