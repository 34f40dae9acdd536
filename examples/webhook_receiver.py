"""Receive events by webhook: the signature is verified, and an event that comes again is handled once.

export PATRA_BUS_WEBHOOK_NETWORKS=127.0.0.0/8                        an endpoint on this machine, for a trial
patra bus webhooks add shop http://127.0.0.1:9000/ order.placed      prints the secret
SECRET=whsec_… python webhook_receiver.py 9000
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["SECRET"])
handled: set[str] = set()  # a real receiver keeps this in its database, in the transaction of the effect


class Receiver(BaseHTTPRequestHandler):
    """2xx: taken. Anything else is tried again."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError:
            self.send_response(401)
            self.end_headers()
            return
        event_id = self.headers["webhook-id"]
        if event_id not in handled:
            handled.add(event_id)
            print(event_id, json.loads(body), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
