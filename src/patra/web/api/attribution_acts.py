"""What operators do over HTTP: keys of apps, records that are issued again. Every act is audited."""

from typing import Any

import msgspec

from patra.app.access.actor import Role
from patra.attribution.app_keys import AppKey, add_key, app_keys, revoke_keys, rotate_key
from patra.attribution.delivery.reissue import ReissuedRecord, reissue
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Request

TAG = "attribution"


class Apps(msgspec.Struct, frozen=True, kw_only=True):
    keys: list[AppKey]


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key; it is shown here and never again."""

    app_id: str
    key: str


class Revoked(msgspec.Struct, frozen=True, kw_only=True):
    revoked: list[str]


class ReissueBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records to issue again: those that carry a key and that the archive did not take."""

    key: str


class ReissuedRecords(msgspec.Struct, frozen=True, kw_only=True):
    records: list[ReissuedRecord]


def _apps(request: Request) -> Apps:
    return Apps(keys=request.patra.db.read(app_keys))


def _add_key(request: Request) -> NewKey:
    app_id, now = request.path["app"], request.patra.clock.now()
    return NewKey(app_id=app_id, key=request.act(lambda tx: add_key(tx, app_id, now), app_id))


def _rotate_key(request: Request) -> NewKey:
    app_id, now = request.path["app"], request.patra.clock.now()
    return NewKey(app_id=app_id, key=request.act(lambda tx: rotate_key(tx, app_id, now), app_id))


def _revoke_keys(request: Request) -> Revoked:
    app_id, now = request.path["app"], request.patra.clock.now()
    return Revoked(revoked=request.act(lambda tx: revoke_keys(tx, app_id, now), app_id))


def _reissue(request: Request) -> ReissuedRecords:
    key, patra = request.body.key, request.patra
    in_store = patra.settings.attribution.archive == "store"
    found = request.act(lambda tx: reissue(tx, key, patra.clock.now(), archived=in_store), key)
    return ReissuedRecords(records=found)


def act_routes() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    return [
        group.get("/attribution/apps", _apps, "App keys, by their hashes", Apps),
        _acting("POST", "/attribution/apps/{app}/keys", _add_key, "Give an app a key, shown once", NewKey, "add"),
        _acting(
            "POST",
            "/attribution/apps/{app}/rotate",
            _rotate_key,
            "Revoke an app's keys and give it a new one, shown once",
            NewKey,
            "rotate",
        ),
        _acting("DELETE", "/attribution/apps/{app}/keys", _revoke_keys, "Revoke an app's keys", Revoked, "revoke"),
        group.post(
            "/attribution/reissue",
            _reissue,
            "attribution.record.reissue",
            "Issue records again that the archive did not take, under a new key",
            request=ReissueBody,
            response=ReissuedRecords,
            problems={400: "No record that carries the key was given up or is in conflict"},
        ),
    ]


def _acting(method: str, path: str, handler: Handler, summary: str, response: Any, act: str) -> Endpoint:
    return EndpointGroup(TAG).post(
        path,
        handler,
        f"attribution.app.{act}",
        summary,
        method=method,
        role=Role.ADMIN,
        response=response,
        problems={400: "No such app or key"},
    )
