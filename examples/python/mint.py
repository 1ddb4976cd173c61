"""Mints a token, mints it again under the same key, checks a webhook, and waits until L1 has it.

MINTMARK_URL=http://127.0.0.1:3000 MINTMARK_API_KEY=... ASSET=... python3 examples/python/mint.py
"""

import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from mintmark import Client, event_of

client = Client(os.environ["MINTMARK_URL"], os.environ["MINTMARK_API_KEY"])
# Each run is another order. An order that somebody names is minted once, however often this runs.
token = os.environ.get("TOKEN", str(int(time.time())))
order = os.environ.get("ORDER", f"order-{token}")
deliveries = queue.Queue()


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        deliveries.put((self.headers, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


hook = HTTPServer(("127.0.0.1", 0), Hook)
threading.Thread(target=hook.serve_forever, daemon=True).start()
# A sandbox takes an address of this machine; elsewhere it is https and public.
address = {"url": f"http://127.0.0.1:{hook.server_port}/", "types": ["mint.accepted"]}
webhook, _ = client.call("POST", "/api/v1/webhooks", address)

mint = {
    "assetId": os.environ["ASSET"],
    "tokenId": token,
    "amount": 1,
    "dataAvailabilityMode": "zk-rollup",
    "reference": order,
}
owner = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
request = {"users": [{"ownerAddress": owner, "mints": [mint]}]}
first, was_minted = client.mint(request, idempotency_key=order)
if was_minted:
    # Its event was told before this webhook was made.
    client.call("POST", f"/api/v1/webhooks/{webhook['webhookId']}/test")
again, was_repeat = client.mint(request, idempotency_key=order)
print(f"vault {first['vaults'][0]['vaultId']} is minted")
print(f"again under {order}: the same mint {again['mintId'] == first['mintId']}, a repeat {was_repeat}")

headers, body = deliveries.get(timeout=60)
event = event_of(webhook["secret"], headers, body)
print(f"the webhook says {event['type']}")
try:
    event_of(webhook["secret"], headers, body.replace(b'"type"', b'"kind"'))
    print("a forged event was taken")
except ValueError as reason:
    print(f"a forged event is refused: {reason}")
client.call("DELETE", f"/api/v1/webhooks/{webhook['webhookId']}")

final = client.until_final(first["mintId"])
print(f"the mint is {final[0]['status']}, in transaction {final[0]['l1TxHash']}")
