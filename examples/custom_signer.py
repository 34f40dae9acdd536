"""A provider whose requests must be signed in its own way: a signing hook, found by an entry point.

In the pyproject.toml of the distribution that brings this module, installed beside Patra:

    [project.entry-points."patra.ingest.signing"]
    museum_v1 = "custom_signer:museum_v1"

The pack (museum.yaml) names the hook: auth: {type: CUSTOM, signingHook: museum_v1, credentialRef: museum}
"""

import hmac
from hashlib import sha256

import msgspec


def museum_v1(request, secrets, now):
    """The museum wants `X-Museum: TIME:SIGNATURE` over the time and the URL."""
    seconds = str(now // 1_000_000)
    signature = hmac.new(secrets["secret"].encode(), f"{seconds} {request.url}".encode(), sha256).hexdigest()
    return msgspec.structs.replace(request, headers=(*request.headers, ("X-Museum", f"{seconds}:{signature}")))
