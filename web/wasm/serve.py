"""Shows the static folder of `make web` with the headers that isolate its page, so that it has threads.
Usage: serve.py [FOLDER [PORT]]"""
import functools
import http.server
import sys


class Isolated(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *unused):
        pass


folder, port = (sys.argv[1:] + ["build-web/site", "8000"][len(sys.argv) - 1:])[:2]
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), functools.partial(Isolated, directory=folder))
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    pass
