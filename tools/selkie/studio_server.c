/* Live connections of the studio: what comes in is checked and passed on, what goes out is the latest there is. */
#define _GNU_SOURCE
#include "studio_server.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON && SELKIE_HAVE_WEBSOCKETS

#include <stdlib.h>
#include <string.h>

#include "base/timer.h"
#include "defs/describe.h"
#include "studio_server_internal.h"
#include "studio_text.h"

static const double credit_a_second = 240, most_credit = 480; /* messages that a connection may send */

socket_functions sockets;

/* --- Outgoing --- */

static void put_in_outbox(studio_live *live, studio_blob *blob)
{
    if (!blob || live->outbox_count == STUDIO_MAX_OUTBOX) {
        studio_blob_release(blob);
        return;
    }
    live->outbox[live->outbox_count++] = blob;
    sockets.lws_callback_on_writable(live->socket);
}

/* A frame for a page that has seen the earlier ones. */
static int may_send_frame(const studio_live *live)
{
    return live->sent_frames - live->seen_frames < STUDIO_FRAMES_AHEAD;
}

/* The next blob for a connection: replies, then what is new, in the order that the page needs it. Held. */
static studio_blob *next_blob(studio_server *server, studio_live *live)
{
    if (live->outbox_count) {
        studio_blob *blob = live->outbox[0];
        memmove(live->outbox, live->outbox + 1, (size_t)(--live->outbox_count) * sizeof *live->outbox);
        return blob;
    }
    for (int kind = 0; kind < STUDIO_KIND_COUNT; kind++) {
        if (kind == STUDIO_FRAME && !may_send_frame(live))
            continue;
        studio_blob *blob = studio_latest(server->exchange, (studio_kind)kind);
        if (blob && blob->number != live->sent[kind]) {
            live->sent[kind] = blob->number;
            if (kind == STUDIO_FRAME)
                live->sent_frames++;
            return blob;
        }
        studio_blob_release(blob);
    }
    return NULL;
}

/* Writes fragments until the socket takes no more. */
static int write_out(studio_server *server, studio_live *live)
{
    do {
        if (!live->out) {
            live->out = next_blob(server, live);
            live->out_offset = 0;
        }
        if (!live->out) {
            if (may_send_frame(live))
                studio_want_frame(server->exchange);
            return 0;
        }
        const studio_blob *blob = live->out;
        size_t length = blob->length - live->out_offset;
        length = length > STUDIO_FRAGMENT ? STUDIO_FRAGMENT : length;
        const int is_first = live->out_offset == 0, is_last = live->out_offset + length == blob->length;
        const int flags = lws_write_ws_flags(blob->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT, is_first, is_last);

        /* The library writes its header before the bytes: of a blob that others send as well it gets a copy. */
        memcpy(server->scratch + LWS_PRE, blob->bytes + live->out_offset, length);
        if (sockets.lws_write(live->socket, server->scratch + LWS_PRE, length, (enum lws_write_protocol)flags) <
            (int)length)
            return -1;
        live->out_offset += length;
        if (is_last) {
            studio_blob_release(live->out);
            live->out = NULL;
        }
    } while (!sockets.lws_send_pipe_choked(live->socket));
    sockets.lws_callback_on_writable(live->socket);
    return 0;
}

/* --- Who controls --- */

static void tell_roles(studio_server *server)
{
    for (int i = 0; i < server->live_count; i++) {
        studio_text text;
        if (studio_text_open(&text))
            continue;
        fputc('{', text.stream);
        studio_text_string(&text, "is", "role");
        studio_text_number(&text, "protocol", 1);
        studio_text_bool(&text, "controller", server->lives[i]->number == server->controller);
        studio_text_number(&text, "connections", server->live_count);
        fputc('}', text.stream);
        put_in_outbox(server->lives[i], studio_text_close(&text, 0));
    }
}

/* --- Incoming --- */

static int close_for(studio_live *live, enum lws_close_status status, const char *reason)
{
    live->is_closing = 1;
    sockets.lws_close_reason(live->socket, status, (unsigned char *)(uintptr_t)reason, strlen(reason));
    return -1;
}

/* Counts a message against the rate that a connection may send at. */
static int has_credit(studio_live *live)
{
    const double now = sk_wall_ms() / 1000;
    live->credit += (now - live->credit_time) * credit_a_second;
    live->credit = live->credit > most_credit ? most_credit : live->credit;
    live->credit_time = now;
    live->credit -= 1;
    return live->credit >= 0;
}

static void take_message(studio_server *server, studio_live *live)
{
    studio_message message;
    char problem[256];
    if (studio_message_parse(live->in ? live->in : "", live->in_length, &message, problem, sizeof problem)) {
        put_in_outbox(live, studio_problem("message", problem));
        return;
    }
    const studio_verb verb = message.verb;
    if (verb == STUDIO_SEEN) {
        const uint32_t ahead = live->sent_frames - live->seen_frames;
        live->seen_frames += ahead > 0;
        sockets.lws_callback_on_writable(live->socket);
    } else if (verb == STUDIO_CONTROL) {
        server->controller = live->number;
        tell_roles(server);
    } else if (!studio_verb_is_free(verb) && live->number != server->controller) {
        put_in_outbox(live, studio_problem(studio_verb_name(verb), "another page controls; this one watches"));
    } else if (studio_send(server->exchange, live->number, &message)) {
        put_in_outbox(live, studio_problem(studio_verb_name(verb), "too much to do; try again"));
    }
    studio_message_free(&message);
}

static int receive(studio_server *server, studio_live *live, const char *bytes, size_t length)
{
    if (sockets.lws_frame_is_binary(live->socket))
        return close_for(live, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "text only");
    if (live->in_length + length > STUDIO_MAX_MESSAGE)
        return close_for(live, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "too long");
    if (live->in_length + length + 1 > live->in_capacity) {
        const size_t capacity = 2 * (live->in_length + length) + 1;
        char *longer = realloc(live->in, capacity);
        if (!longer)
            return close_for(live, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "no memory");
        live->in = longer;
        live->in_capacity = capacity;
    }
    memcpy(live->in + live->in_length, bytes, length);
    live->in_length += length;
    live->in[live->in_length] = 0;
    if (!sockets.lws_is_final_fragment(live->socket) || sockets.lws_remaining_packet_payload(live->socket))
        return 0;

    /* The message is complete. */
    if (!has_credit(live))
        return close_for(live, LWS_CLOSE_STATUS_POLICY_VIOLATION, "too many messages");
    take_message(server, live);
    live->in_length = 0;
    if (live->in_capacity > 64 << 10) {
        free(live->in);
        live->in = NULL;
        live->in_capacity = 0;
    }
    return 0;
}

/* --- Connections --- */

static int join(studio_server *server, studio_live *live, struct lws *socket)
{
    memset(live, 0, sizeof *live);
    live->socket = socket;
    if (server->live_count == STUDIO_MAX_LIVE) {
        live->is_closing = 1;
        return -1;
    }
    live->number = ++server->last_number;
    live->credit = most_credit;
    live->credit_time = sk_wall_ms() / 1000;
    server->lives[server->live_count++] = live;
    if (!server->controller)
        server->controller = live->number;
    tell_roles(server);
    sockets.lws_callback_on_writable(socket);
    return 0;
}

/* The oldest of the others becomes the controller. */
static void leave(studio_server *server, studio_live *live)
{
    int place = -1;
    for (int i = 0; i < server->live_count; i++)
        if (server->lives[i] == live)
            place = i;
    studio_blob_release(live->out);
    for (int i = 0; i < live->outbox_count; i++)
        studio_blob_release(live->outbox[i]);
    free(live->in);
    const uint32_t number = live->number;
    memset(live, 0, sizeof *live);
    if (place < 0)
        return;
    server->live_count--;
    memmove(server->lives + place, server->lives + place + 1,
            (size_t)(server->live_count - place) * sizeof *server->lives);
    if (server->controller == number)
        server->controller = server->live_count ? server->lives[0]->number : 0;
    tell_roles(server);
}

/* The simulation has something new. */
static void pass_on(studio_server *server)
{
    studio_reply reply;
    while (studio_take_reply(server->exchange, &reply)) {
        studio_live *receiver = NULL;
        for (int i = 0; i < server->live_count; i++)
            if (server->lives[i]->number == reply.receiver)
                receiver = server->lives[i];
        if (receiver)
            put_in_outbox(receiver, reply.blob);
        else
            studio_blob_release(reply.blob);
    }
    for (int i = 0; i < server->live_count; i++)
        sockets.lws_callback_on_writable(server->lives[i]->socket);
}

static int serve_live(struct lws *socket, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    studio_server *server = sockets.lws_context_user(sockets.lws_get_context(socket));
    studio_live *live = user;
    char path[64];
    switch (reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        if (sockets.lws_hdr_copy(socket, path, sizeof path, WSI_TOKEN_GET_URI) <= 0 || strcmp(path, "/api/live") != 0 ||
            server->live_count == STUDIO_MAX_LIVE)
            return -1;
        return studio_refuses(server, socket, 1) ? -1 : 0;
    case LWS_CALLBACK_ESTABLISHED:
        return join(server, live, socket);
    case LWS_CALLBACK_CLOSED:
        if (live)
            leave(server, live);
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return live->is_closing ? -1 : receive(server, live, in, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return live->is_closing ? -1 : write_out(server, live);
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        pass_on(server);
        return 0;
    default:
        return 0;
    }
}

static int serve_http(struct lws *socket, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    studio_server *server = sockets.lws_context_user(sockets.lws_get_context(socket));
    (void)length;
    switch (reason) {
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
        return server->connections >= STUDIO_MAX_CONNECTIONS;
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        server->connections++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        server->connections--;
        return 0;
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: /* a WebSocket without our protocol */
        return -1;
    case LWS_CALLBACK_HTTP:
        return studio_http_begin(server, socket, user, in);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return studio_http_go_on(server, socket, user);
    default:
        return sockets.lws_callback_http_dummy(socket, reason, user, in, length);
    }
}

/* --- Opening and closing --- */

static const struct lws_protocols protocols[] = {
    {"http", serve_http, sizeof(studio_transfer), 0, 0, NULL, STUDIO_FRAGMENT},
    {"selkie-studio", serve_live, sizeof(studio_live), 16 << 10, 0, NULL, STUDIO_FRAGMENT + LWS_PRE},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};

/* [{"name": ..., "title": ...}, ...] */
static char *list_scenes(const known_scenes *scenes)
{
    studio_text text;
    if (studio_text_open(&text))
        return NULL;
    fputc('[', text.stream);
    for (size_t i = 0; i < scenes->count; i++) {
        selkie_scene *scene = NULL;
        if (selkie_scene_load(scenes->items[i].path, 0, NULL, &scene, NULL) != SELKIE_OK)
            continue;
        studio_text_key(&text, NULL);
        fputc('{', text.stream);
        studio_text_string(&text, "name", scenes->items[i].name);
        studio_text_string(&text, "title", scene->title);
        studio_text_number(&text, "dimension", scene->domain.dimension);
        fputc('}', text.stream);
        selkie_scene_free(scene);
    }
    fputc(']', text.stream);
    studio_blob *blob = studio_text_close(&text, 0);
    char *list = blob ? strndup((const char *)blob->bytes, blob->length) : NULL;
    studio_blob_release(blob);
    return list;
}

static char *write_schema(void)
{
    char *schema = NULL;
    size_t length;
    FILE *stream = open_memstream(&schema, &length);
    if (!stream)
        return NULL;
    sk_scene_schema_write(stream);
    fclose(stream);
    return schema;
}

static void wake(void *context)
{
    const studio_server *server = context;
    sockets.lws_cancel_service(server->context);
}

static int listen_on(studio_server *server, int port)
{
    struct lws_context_creation_info info = {
        .port = port,
        .iface = "127.0.0.1",
        .protocols = protocols,
        .user = server,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .timeout_secs = 10,
        .keepalive_timeout = 10,
        .max_http_header_data = 4096,
        .max_http_header_pool = STUDIO_MAX_CONNECTIONS,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DISABLE_IPV6 |
                   LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS,
    };
    sockets.lws_set_log_level(0, NULL);
    server->context = sockets.lws_create_context(&info);
    if (!server->context)
        return -1;
    server->host = sockets.lws_create_vhost(server->context, &info);
    if (!server->host)
        return -1;
    server->port = sockets.lws_get_vhost_listen_port(server->host);
    return server->port > 0 ? 0 : -1;
}

static selkie_code load_sockets(selkie_error *error)
{
#if SELKIE_LATE_WEBSOCKETS
    static const char *const names[] = {SOCKETS(SK_LIBRARY_NAME)};
    return sk_library_load(SELKIE_LATE_WEBSOCKETS_FILE, SELKIE_LATE_WEBSOCKETS_FOLDER, names, sizeof sockets, &sockets,
                           "studio", error);
#else
    (void)error;
    sockets = (socket_functions){SOCKETS(SK_LIBRARY_ADDRESS)};
    return SELKIE_OK;
#endif
}

studio_server *studio_server_open(const studio_server_options *options, char *problem, size_t problem_size)
{
    studio_server *server = calloc(1, sizeof *server);
    snprintf(problem, problem_size, "no memory for the server");
    if (!server)
        return NULL;
    selkie_error error = {0};
    if (load_sockets(&error) != SELKIE_OK) {
        snprintf(problem, problem_size, "%s", error.message);
        free(server);
        return NULL;
    }
    snprintf(server->token, sizeof server->token, "%s", options->token);
    server->scenes = options->scenes;
    server->exchange = options->exchange;
    server->scratch = malloc(LWS_PRE + STUDIO_FRAGMENT);
    server->scene_list = list_scenes(options->scenes);
    server->run_list = list_scenes(options->runs);
    server->schema = write_schema();
    if (!server->scratch || !server->scene_list || !server->run_list || !server->schema) {
        studio_server_close(server);
        return NULL;
    }
    if (listen_on(server, options->port)) {
        snprintf(problem, problem_size, "port %d of 127.0.0.1 cannot be used: is it taken? --port 0 finds a free one",
                 options->port);
        studio_server_close(server);
        return NULL;
    }
    snprintf(server->policy, sizeof server->policy,
             "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
             "connect-src 'self' ws://127.0.0.1:%d ws://localhost:%d; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             server->port, server->port);
    server->exchange->wake = wake;
    server->exchange->wake_context = server;
    return server;
}

int studio_server_port(const studio_server *server)
{
    return server->port;
}

void studio_server_run(studio_server *server)
{
    while (!server->stop && sockets.lws_service(server->context, 0) >= 0)
        ;
}

void studio_server_stop(studio_server *server)
{
    server->stop = 1;
    sockets.lws_cancel_service(server->context);
}

void studio_server_close(studio_server *server)
{
    if (!server)
        return;
    if (server->context)
        sockets.lws_context_destroy(server->context);
    free(server->scratch);
    free(server->scene_list);
    free(server->run_list);
    free(server->schema);
    free(server);
}

#endif
