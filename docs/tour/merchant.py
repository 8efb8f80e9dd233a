"""A merchant for the tour: prints each notification and answers 200."""

from http.server import BaseHTTPRequestHandler, HTTPServer

class Merchant(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(self.headers["webhook-id"], body.decode(), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass

HTTPServer(("127.0.0.1", 9000), Merchant).serve_forever()
