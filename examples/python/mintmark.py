"""A client of Mintmark's HTTP API, of Python's standard library alone."""

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request


class Refused(Exception):
    """The server's problem document; `code` never changes, and the message says what to do."""

    def __init__(self, problem):
        super().__init__(problem.get("detail"))
        self.code = problem.get("code")


class Client:
    def __init__(self, url, api_key, retries=5):
        self.url = url.rstrip("/")
        self.api_key = api_key
        self.retries = retries

    def call(self, method, path, body=None, idempotency_key=None):
        """Sends a request again while the server is away or busy. A POST needs a key for that."""
        headers = {"X-Api-Key": self.api_key, "Content-Type": "application/json"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        may_repeat = method == "GET" or idempotency_key is not None
        for attempt in range(self.retries + 1):
            last = attempt == self.retries or not may_repeat
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer), answer.headers
            except urllib.error.HTTPError as error:
                if error.code not in (429, 502, 503, 504) or last:
                    raise Refused(json.loads(error.read() or b"{}")) from None
                pause = float(error.headers.get("Retry-After") or 2**attempt)
            except (urllib.error.URLError, TimeoutError, ConnectionError):
                if last:
                    raise
                pause = 2**attempt
            time.sleep(min(pause, 30))

    def mint(self, request, idempotency_key):
        """Mints once for each key, however often it is called. The second value: was it a repeat?"""
        answer, headers = self.call("POST", "/api/v1/mint", request, idempotency_key)
        return answer, headers.get("Idempotency-Replayed") == "true"

    def until_final(self, mint_id, timeout=3600):
        """The transactions of a mint when L1 can no longer take them back."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            page, _ = self.call("GET", f"/api/v1/transactions?mintId={mint_id}")
            statuses = {one["status"] for one in page["data"]}
            if "failed" in statuses:
                raise RuntimeError(f"mint {mint_id} has failed")
            if statuses == {"finalized"}:
                return page["data"]
            time.sleep(1)
        raise TimeoutError(f"mint {mint_id} is not final yet")


def event_of(secret, headers, body, tolerance=300):
    """The event of a webhook's request. Raises ValueError for a forged or an old one."""
    event_id, sent_at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(sent_at)) > tolerance:
        raise ValueError("the request is too old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join([event_id.encode(), sent_at.encode(), body])
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = headers["webhook-signature"].split(" ")
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in given):
        raise ValueError("the signature is not the server's")
    return json.loads(body)
