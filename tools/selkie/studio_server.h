/* The server of the studio: HTTP for the page, a WebSocket for messages and frames, on 127.0.0.1 alone. */
#ifndef SELKIE_TOOL_STUDIO_SERVER_H
#define SELKIE_TOOL_STUDIO_SERVER_H

#include "studio_exchange.h"
#include "tool.h"

enum { STUDIO_TOKEN = 32 }; /* characters */

typedef struct studio_server studio_server;

typedef struct studio_server_options {
    int port; /* 0 = any that is free */
    const char *token;
    const known_scenes *scenes, *runs;
    studio_exchange *exchange;
} studio_server_options;

/* NULL with one line in `problem`. Sets the exchange's wake. */
studio_server *studio_server_open(const studio_server_options *options, char *problem, size_t problem_size);
int studio_server_port(const studio_server *server);
/* Serves until studio_server_stop(), which may be called from a signal handler or another thread. */
void studio_server_run(studio_server *server);
void studio_server_stop(studio_server *server);
void studio_server_close(studio_server *server);

#endif
