/* Messages of a page to the studio: any bytes. What is taken has a verb, and a text that ends where it says. */
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "studio_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const allowed[] = {"ring.obj"};
    studio_message message;
    char problem[256] = "", *text = malloc(size + 1), **files = NULL;
    fuzz_demand(text != NULL, "no memory");
    memcpy(text, data, size);
    text[size] = 0;
    if (studio_message_parse(text, size, &message, problem, sizeof problem)) {
        fuzz_demand(problem[0] != 0, "a message was refused without a reason");
        fuzz_demand(message.text == NULL, "a refused message has a text");
        free(text);
        return 0;
    }
    fuzz_demand(message.verb >= 0 && message.verb < STUDIO_VERB_COUNT, "no verb");
    if (message.text) {
        fuzz_demand(strlen(message.text) == message.length, "the length of a text is wrong");
        /* Where a text passes, all files that it names are allowed ones. */
        const int passes = studio_check_files(message.text, message.length, allowed, 1, problem, sizeof problem) == 0;
        const int count = studio_collect_files(message.text, message.length, &files);
        for (int i = 0; i < count; i++) {
            fuzz_demand(!passes || !*files[i] || strcmp(files[i], allowed[0]) == 0, "a foreign file passed");
            free(files[i]);
        }
        free(files);
    }
    studio_message_free(&message);
    free(text);
    return 0;
}
