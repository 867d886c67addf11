/* Pages of the studio, and who may ask for them.
 *
 * A page of another origin can make a browser send requests here, and by DNS rebinding can even read the answers. So
 * Host must be exactly this server, Origin, where a browser sends one, too, and everything below /api/ wants the token
 * of the link. There are no CORS headers, and no file name ever comes from a request: the embedded files are a table.
 */
#include "selkie_config.h"

#if SELKIE_HAVE_JSON && SELKIE_HAVE_WEBSOCKETS

#include <stdio.h>
#include <string.h>

#include "studio_files.h"
#include "studio_server_internal.h"

/* Takes as long for every token of the right length. */
static int tokens_match(const char *a, const char *b)
{
    unsigned difference = 0;
    if (strlen(a) != STUDIO_TOKEN || strlen(b) != STUDIO_TOKEN)
        return 0;
    for (int i = 0; i < STUDIO_TOKEN; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

/* The token of "?token=..." or of "Authorization: Bearer ...". */
static int has_token(const studio_server *server, struct lws *socket)
{
    static const char bearer[] = "Bearer ";
    char given[128] = "";
    const char *value = sockets.lws_get_urlarg_by_name(socket, "token=", given, sizeof given);
    if (value)
        return tokens_match(value, server->token);
    return sockets.lws_hdr_copy(socket, given, sizeof given, WSI_TOKEN_HTTP_AUTHORIZATION) > 0 &&
           strncmp(given, bearer, strlen(bearer)) == 0 && tokens_match(given + strlen(bearer), server->token);
}

/* Whether a header is `before` and one of the two names of this server. */
static int is_own(const studio_server *server, const char *text, const char *before)
{
    char expected[64];
    static const char *const names[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "%s%s:%d", before, names[i], server->port);
        if (strcmp(text, expected) == 0)
            return 1;
    }
    return 0;
}

int studio_refuses(const studio_server *server, struct lws *socket, int wants_token)
{
    char text[256];
    if (sockets.lws_hdr_copy(socket, text, sizeof text, WSI_TOKEN_HOST) <= 0 || !is_own(server, text, ""))
        return HTTP_STATUS_FORBIDDEN;
    if (sockets.lws_hdr_total_length(socket, WSI_TOKEN_ORIGIN) &&
        (sockets.lws_hdr_copy(socket, text, sizeof text, WSI_TOKEN_ORIGIN) <= 0 || !is_own(server, text, "http://")))
        return HTTP_STATUS_FORBIDDEN;
    return wants_token && !has_token(server, socket) ? HTTP_STATUS_UNAUTHORIZED : 0;
}

/* --- Answers --- */

static int find(const studio_server *server, const char *path, studio_transfer *transfer, const char **type)
{
    *type = "application/json";
    const char *const tables[][2] = {
        {"/api/scenes", server->scene_list}, {"/api/runs", server->run_list}, {"/api/schema", server->schema}};
    for (int t = 0; t < 3; t++)
        if (strcmp(path, tables[t][0]) == 0) {
            *transfer = (studio_transfer){(const unsigned char *)tables[t][1], strlen(tables[t][1]), 0};
            return 1;
        }
    for (int i = 0; i < studio_file_count; i++)
        if (strcmp(studio_files[i].path, strcmp(path, "/") == 0 ? "/index.html" : path) == 0) {
            *transfer = (studio_transfer){studio_files[i].bytes, studio_files[i].length, 0};
            *type = studio_files[i].type;
            return 1;
        }
    return 0;
}

static int put_headers(const studio_server *server, struct lws *socket, int status, const char *type, size_t length)
{
    const char *const headers[][2] = {
        {"content-security-policy:", server->policy},
        {"x-content-type-options:", "nosniff"},
        {"referrer-policy:", "no-referrer"},
        {"cross-origin-opener-policy:", "same-origin"},
        {"cross-origin-embedder-policy:", "require-corp"},
        {"cross-origin-resource-policy:", "same-origin"},
        {"cache-control:", "no-store"},
    };
    unsigned char buffer[LWS_PRE + 2048], *start = buffer + LWS_PRE, *at = start, *end = buffer + sizeof buffer - 1;
    if (sockets.lws_add_http_common_headers(socket, (unsigned)status, type, length, &at, end))
        return 1;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (sockets.lws_add_http_header_by_name(socket, (const unsigned char *)headers[i][0],
                                                (const unsigned char *)headers[i][1], (int)strlen(headers[i][1]), &at,
                                                end))
            return 1;
    return sockets.lws_finalize_write_http_header(socket, start, &at, end);
}

int studio_http_begin(studio_server *server, struct lws *socket, studio_transfer *transfer, const char *path)
{
    static const char refused[] = "refused\n", missing[] = "there is no such page\n", only_get[] = "only GET\n";
    const char *type = "text/plain; charset=utf-8";
    const int is_api = strncmp(path, "/api", 4) == 0;
    int status = studio_refuses(server, socket, is_api);
    *transfer = (studio_transfer){(const unsigned char *)refused, strlen(refused), 0};
    if (!status && !sockets.lws_hdr_total_length(socket, WSI_TOKEN_GET_URI)) {
        status = HTTP_STATUS_METHOD_NOT_ALLOWED;
        *transfer = (studio_transfer){(const unsigned char *)only_get, strlen(only_get), 0};
    } else if (!status && !find(server, path, transfer, &type)) {
        status = HTTP_STATUS_NOT_FOUND;
        type = "text/plain; charset=utf-8";
        *transfer = (studio_transfer){(const unsigned char *)missing, strlen(missing), 0};
    }
    if (put_headers(server, socket, status ? status : HTTP_STATUS_OK, type, transfer->length))
        return 1;
    sockets.lws_callback_on_writable(socket);
    return 0;
}

int studio_http_go_on(studio_server *server, struct lws *socket, studio_transfer *transfer)
{
    if (!transfer->bytes)
        return 0;
    do {
        size_t length = transfer->length - transfer->offset;
        length = length > STUDIO_FRAGMENT ? STUDIO_FRAGMENT : length;
        memcpy(server->scratch + LWS_PRE, transfer->bytes + transfer->offset, length);
        transfer->offset += length;
        const int is_last = transfer->offset == transfer->length;
        if (sockets.lws_write(socket, server->scratch + LWS_PRE, length,
                              is_last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)length)
            return 1;
        if (is_last) {
            memset(transfer, 0, sizeof *transfer);
            return sockets.lws_http_transaction_completed(socket) ? -1 : 0;
        }
    } while (!sockets.lws_send_pipe_choked(socket));
    sockets.lws_callback_on_writable(socket);
    return 0;
}

#endif
