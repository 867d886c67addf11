/* What the two halves of the server share: pages (studio_http.c) and live connections (studio_server.c). */
#ifndef SELKIE_TOOL_STUDIO_SERVER_INTERNAL_H
#define SELKIE_TOOL_STUDIO_SERVER_INTERNAL_H

#include <libwebsockets.h>
#include "base/library.h"
#include "studio_server.h"

/* The functions of the library, filled by studio_server_open. */
/* clang-format off */
#define SOCKETS(F) \
    F(lws_add_http_common_headers) F(lws_add_http_header_by_name) F(lws_callback_http_dummy) \
    F(lws_callback_on_writable) F(lws_cancel_service) F(lws_close_reason) F(lws_context_destroy) F(lws_context_user) \
    F(lws_create_context) F(lws_create_vhost) F(lws_finalize_write_http_header) F(lws_frame_is_binary) \
    F(lws_get_context) F(lws_get_urlarg_by_name) F(lws_get_vhost_listen_port) F(lws_hdr_copy) \
    F(lws_hdr_total_length) F(lws_http_transaction_completed) F(lws_is_final_fragment) \
    F(lws_remaining_packet_payload) F(lws_send_pipe_choked) F(lws_service) F(lws_set_log_level) F(lws_write)
/* clang-format on */
SK_LIBRARY_TABLE(socket_functions, SOCKETS);
extern socket_functions sockets;

enum {
    STUDIO_FRAGMENT = 128 << 10,  /* bytes of one write: larger ones take several times as long */
    STUDIO_MAX_LIVE = 32,         /* WebSockets */
    STUDIO_MAX_CONNECTIONS = 128, /* of all kinds */
    STUDIO_MAX_OUTBOX = 16,       /* replies that wait for one connection */
    STUDIO_FRAMES_AHEAD = 2       /* frames that a page has not seen yet */
};

/* A live connection. */
typedef struct studio_live {
    struct lws *socket;
    uint32_t number;
    studio_blob *out; /* what is being written */
    size_t out_offset;
    studio_blob *outbox[STUDIO_MAX_OUTBOX]; /* replies */
    int outbox_count;
    uint32_t sent[STUDIO_KIND_COUNT]; /* numbers of the latest blobs sent */
    uint32_t sent_frames, seen_frames;
    char *in; /* a message that is coming in */
    size_t in_length, in_capacity;
    double credit, credit_time; /* messages that it may still send; when that was counted (s) */
    int is_closing;
} studio_live;

struct studio_server {
    struct lws_context *context;
    struct lws_vhost *host;
    int port;
    char token[STUDIO_TOKEN + 1];
    const known_scenes *scenes;
    studio_exchange *exchange;
    studio_live *lives[STUDIO_MAX_LIVE];
    int live_count;
    uint32_t controller; /* number of a connection; 0 = none */
    uint32_t last_number;
    int connections;
    volatile int stop;
    unsigned char *scratch;      /* [LWS_PRE + STUDIO_FRAGMENT] */
    char *scene_list, *run_list; /* JSON */
    char *schema;
    char policy[512]; /* content security policy */
};

/* Whether Host and Origin are the server's own, and, below /api/, the token is right. The status of a refusal, or 0. */
int studio_refuses(const studio_server *server, struct lws *socket, int wants_token);

/* The file or the table of an address. Returns what the callback of the library must. */
typedef struct studio_transfer {
    const unsigned char *bytes;
    size_t length, offset;
} studio_transfer;
int studio_http_begin(studio_server *server, struct lws *socket, studio_transfer *transfer, const char *path);
int studio_http_go_on(studio_server *server, struct lws *socket, studio_transfer *transfer);

#endif
