"""Ask a model through the proxy with Python's own client, twice over one connection: PROXY HOST KEY CA BODY."""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from urllib.parse import urlsplit

proxy, host, key, ca_file, body = sys.argv[1:]
context = ssl.create_default_context(cafile=ca_file)
context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 does by itself
connection = http.client.HTTPSConnection(urlsplit(proxy).netloc, context=context, timeout=60)
connection.set_tunnel(host, 443)
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": key}
for _ in range(2):
    connection.request("POST", "/v1/messages", body=body, headers=headers)
    with connection.getresponse() as response:
        print(json.dumps({"status": response.status, "body": response.read().decode()}), flush=True)
connection.close()
