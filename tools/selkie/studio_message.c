/* Messages of a page to the studio. Everything that comes from a socket passes through this file; it is fuzzed
 * (tests/fuzz/fuzz_studio.c). */
#include "studio_message.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "defs/describe.h"
#include "scene/json_text.h"

typedef enum content { CONTENT_NONE, CONTENT_TEXT, CONTENT_OBJECT, CONTENT_NUMBER } content;

static const struct verb_info {
    const char *name;
    const char *key; /* beside "do"; NULL = none */
    content content;
    size_t most; /* bytes of a text; for a number its largest value */
    int is_free; /* watchers may send it */
} verbs[STUDIO_VERB_COUNT] = {
    [STUDIO_OPEN] = {"open", "scene", CONTENT_TEXT, STUDIO_MAX_NAME, 0},
    [STUDIO_OPEN_RUN] = {"open_run", "run", CONTENT_TEXT, STUDIO_MAX_NAME, 0},
    [STUDIO_SEEK] = {"seek", "frame", CONTENT_NUMBER, 10000000, 0},
    [STUDIO_LOAD] = {"load", "text", CONTENT_TEXT, STUDIO_MAX_MESSAGE, 0},
    [STUDIO_CHECK] = {"check", "text", CONTENT_TEXT, STUDIO_MAX_MESSAGE, 1},
    [STUDIO_RUN] = {"run", NULL, CONTENT_NONE, 0, 0},
    [STUDIO_PAUSE] = {"pause", NULL, CONTENT_NONE, 0, 0},
    [STUDIO_STEP] = {"step", NULL, CONTENT_NONE, 0, 0},
    [STUDIO_RESET] = {"reset", NULL, CONTENT_NONE, 0, 0},
    [STUDIO_SPEED] = {"speed", "value", CONTENT_NUMBER, 1000, 0},
    [STUDIO_CHANGE] = {"change", "change", CONTENT_OBJECT, STUDIO_MAX_CHANGE, 0},
    [STUDIO_RECORD] = {"record", NULL, CONTENT_NONE, 0, 1},
    [STUDIO_DRAW] = {"draw", "drawn", CONTENT_OBJECT, STUDIO_MAX_CHANGE, 0},
    [STUDIO_FLOW] = {"flow", NULL, CONTENT_NONE, 0, 1},
    [STUDIO_SKETCH] = {"sketch", "scene", CONTENT_TEXT, STUDIO_MAX_NAME, 0},
    [STUDIO_SEEN] = {"seen", "frame", CONTENT_NUMBER, 4294967295u, 1},
    [STUDIO_CONTROL] = {"control", NULL, CONTENT_NONE, 0, 1},
};

const char *studio_verb_name(studio_verb verb)
{
    return verbs[verb].name;
}

int studio_verb_is_free(studio_verb verb)
{
    return verbs[verb].is_free;
}

void studio_message_free(studio_message *message)
{
    free(message->text);
    memset(message, 0, sizeof *message);
}

static int refuse(char *problem, size_t size, const char *what)
{
    snprintf(problem, size, "%s", what);
    return -1;
}

/* Copies the text of a verb. */
static int take_text(studio_message *message, const char *text, size_t length, char *problem, size_t size)
{
    if (length > verbs[message->verb].most)
        return refuse(problem, size, "the text is too long");
    if (memchr(text, 0, length))
        return refuse(problem, size, "the text holds a zero byte");
    message->text = malloc(length + 1);
    if (!message->text)
        return refuse(problem, size, "no memory");
    memcpy(message->text, text, length);
    message->text[length] = 0;
    message->length = length;
    return 0;
}

static int take_content(studio_message *message, json_object *value, char *problem, size_t size)
{
    const struct verb_info *info = &verbs[message->verb];
    const json_type type = json_object_get_type(value);
    switch (info->content) {
    case CONTENT_TEXT:
        if (type != json_type_string)
            return refuse(problem, size, "the text must be a string");
        return take_text(message, json_object_get_string(value), (size_t)json_object_get_string_len(value), problem,
                         size);
    case CONTENT_OBJECT: {
        if (type != json_type_object)
            return refuse(problem, size, "the value must be an object");
        const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
        return text ? take_text(message, text, strlen(text), problem, size) : refuse(problem, size, "no memory");
    }
    case CONTENT_NUMBER: {
        const double number = json_object_get_double(value);
        if ((type != json_type_int && type != json_type_double) || !(number >= 0 && number <= (double)info->most))
            return refuse(problem, size, "the number is out of range");
        message->value = number;
        message->frame = (int64_t)floor(number);
        return 0;
    }
    default:
        return 0;
    }
}

static int read_message(json_object *root, studio_message *message, char *problem, size_t size)
{
    json_object *verb, *value = NULL;
    if (json_object_get_type(root) != json_type_object)
        return refuse(problem, size, "a message must be an object");
    if (!json_object_object_get_ex(root, "do", &verb) || json_object_get_type(verb) != json_type_string)
        return refuse(problem, size, "a message must have a verb: {\"do\": \"run\"}");

    /* One of the verbs, with exactly its keys. */
    int found = -1;
    for (int v = 0; v < STUDIO_VERB_COUNT; v++)
        if (strcmp(json_object_get_string(verb), verbs[v].name) == 0)
            found = v;
    if (found < 0)
        return refuse(problem, size, "there is no such verb");
    message->verb = (studio_verb)found;
    const struct verb_info *info = &verbs[found];
    const int keys = info->key ? 2 : 1;
    if (json_object_object_length(root) != keys || (info->key && !json_object_object_get_ex(root, info->key, &value))) {
        snprintf(problem, size, "%s takes %s%s", info->name, info->key ? "the key " : "no keys",
                 info->key ? info->key : "");
        return -1;
    }
    return info->key ? take_content(message, value, problem, size) : 0;
}

int studio_message_parse(const char *text, size_t length, studio_message *message, char *problem, size_t problem_size)
{
    json_object *root;
    size_t offset;
    selkie_error error = {0};
    memset(message, 0, sizeof *message);
    if (length > STUDIO_MAX_MESSAGE)
        return refuse(problem, problem_size, "the message is too long");
    if (sk_json_parse(text, length, &root, &offset, &error) != SELKIE_OK)
        return refuse(problem, problem_size, error.message);
    const int code = read_message(root, message, problem, problem_size);
    json_object_put(root);
    if (code)
        studio_message_free(message);
    return code;
}

/* --- Files that a text names --- */

/* Whether values of a key are names of files, by the table of fields. */
static int holds_file(const char *key)
{
    const sk_struct *structs[64];
    const int count = sk_scene_structs(structs, 64);
    for (int s = 0; s < count && s < 64; s++)
        for (int f = 0; f < structs[s]->field_count; f++)
            if (structs[s]->fields[f].type == SK_FIELD_FILE && strcmp(structs[s]->fields[f].key, key) == 0)
                return 1;
    return 0;
}

/* Visits the names of files of a value; stops where `visit` does not return 0. */
static int visit_files(json_object *value, int (*visit)(const char *file, void *context), void *context)
{
    int result = 0;
    if (json_object_get_type(value) == json_type_array)
        for (size_t i = 0; i < json_object_array_length(value) && !result; i++)
            result = visit_files(json_object_array_get_idx(value, i), visit, context);
    if (json_object_get_type(value) != json_type_object)
        return result;
    json_object_object_foreach(value, key, member)
    {
        if (json_object_get_type(member) == json_type_string && holds_file(key))
            result = visit(json_object_get_string(member), context);
        else
            result = visit_files(member, visit, context);
        if (result)
            break;
    }
    return result;
}

static int visit_files_of(const char *text, size_t length, int (*visit)(const char *file, void *context), void *context)
{
    json_object *root;
    size_t offset;
    if (sk_json_parse(text, length, &root, &offset, NULL) != SELKIE_OK)
        return 0;
    const int result = visit_files(root, visit, context);
    json_object_put(root);
    return result;
}

typedef struct file_check {
    const char *const *allowed;
    int count;
    char *problem;
    size_t problem_size;
} file_check;

static int check_file(const char *file, void *context)
{
    const file_check *check = context;
    for (int i = 0; i < check->count; i++)
        if (strcmp(file, check->allowed[i]) == 0)
            return 0;
    if (!*file)
        return 0;
    snprintf(check->problem, check->problem_size, "\"%.100s\" is no file of the opened scene: only its own can be used",
             file);
    return -1;
}

int studio_check_files(const char *text, size_t length, const char *const *allowed, int allowed_count, char *problem,
                       size_t problem_size)
{
    file_check check = {allowed, allowed_count, problem, problem_size};
    return visit_files_of(text, length, check_file, &check);
}

typedef struct file_list {
    char **files;
    int count;
} file_list;

static int add_file(const char *file, void *context)
{
    file_list *list = context;
    char **longer = realloc(list->files, sizeof *longer * ((size_t)list->count + 1));
    if (!longer)
        return -1;
    list->files = longer;
    if ((list->files[list->count] = strdup(file)))
        list->count++;
    return 0;
}

int studio_collect_files(const char *text, size_t length, char ***files)
{
    file_list list = {0};
    visit_files_of(text, length, add_file, &list);
    *files = list.files;
    return list.count;
}

#endif
