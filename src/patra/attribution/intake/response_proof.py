"""Decides from a batch and the signing secrets of its app which `responseReference` is not proven to be the app's.

F23 gives a closure to the app that names it first. An app that is bound to a signing secret names only what it can
prove: the ad server signs each `responseReference` with the secret, and the batch carries the proofs in
`extensions.responseProofs`. The batch is refused before it is read by the engine, so that the log holds only what is
proven and a replay needs no secret.
"""

import hmac
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.intake.envelope import read_json

EXTENSION = "responseProofs"


class Signing(msgspec.Struct, frozen=True, kw_only=True):
    """The secrets of each app that is bound to any; `required` refuses apps that are bound to none."""

    secrets: Mapping[str, tuple[str, ...]] = {}
    required: bool = False

    def concerns(self, app_id: str | None) -> bool:
        """Whether a batch of this app must be checked; None is an app that no key identifies."""
        return self.required or app_id in self.secrets or (app_id is None and bool(self.secrets))


class Unproven(msgspec.Struct, frozen=True, kw_only=True):
    """Why a batch is refused."""

    code: Reason
    detail: str


def proof_of(secret: str, app_id: str, reference: str) -> str:
    """HMAC-SHA256 of `appId`, a line feed and `responseReference`, in hex."""
    return hmac.digest(secret.encode(), f"{app_id}\n{reference}".encode(), "sha256").hex()


def unproven(body: bytes, app_id: str | None, signing: Signing) -> Unproven | None:
    """The first reference without its proof; None where all have theirs, or where the batch is refused anyway."""
    try:
        batch = read_json(body)
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, Any]", batch) if isinstance(batch, dict) else {}
    app = app_id or fields.get("appId")
    secrets = signing.secrets.get(app, ()) if type(app) is str else ()
    if not secrets:
        detail = f"{app} is bound to no signing secret, and attribution.require_signing is on"
        return Unproven(code=Reason.APP_NOT_BOUND, detail=detail) if signing.required else None
    proofs = _mapping(_mapping(fields.get("extensions")).get(EXTENSION))
    for reference in _references(fields.get("events")):
        given = proofs.get(reference)
        if given is None:
            detail = f"extensions.{EXTENSION} has no proof of responseReference {reference!r}"
            return Unproven(code=Reason.RESPONSE_PROOF_MISSING, detail=detail)
        right = [proof_of(secret, cast("str", app), reference).encode() for secret in secrets]
        shown = given.lower().encode() if type(given) is str else b""
        if not any(hmac.compare_digest(shown, one) for one in right):
            detail = f"the proof of responseReference {reference!r} is not made with a secret of {app}"
            return Unproven(code=Reason.RESPONSE_PROOF_INVALID, detail=detail)
    return None


def _references(events: Any) -> list[str]:
    """Every reference that the events name, each once."""
    if not isinstance(events, list):
        return []
    found = (_mapping(event).get("responseReference") for event in cast("list[Any]", events))
    return list(dict.fromkeys(one for one in found if type(one) is str and one))


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
