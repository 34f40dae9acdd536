"""Decide whether an actor's scopes reach an endpoint, and narrow the query to them.

A token that is bound to an app or to tenants may ask only endpoints whose answer a query parameter, or what the path
names (`{app}`, a run, a dead letter), narrows to one app or tenant, and what holds nothing of any of them; everything
else is refused, so that an endpoint that was forgotten reveals nothing about others.
"""

from collections.abc import Mapping

from patra.app.access.actor import UNBOUND, Actor, Role, Scope
from patra.web.endpoint import Endpoint
from patra.web.problem import Problem


def within_scope(actor: Actor, endpoint: Endpoint, path: Mapping[str, str]) -> Actor | Problem | None:
    """The actor where their scopes reach this request; None for a bound one where anyone may ask."""
    scope = actor.scope
    if scope == UNBOUND:
        return actor
    if endpoint.role is None:
        return None
    if endpoint.unbound:
        return _refusal("this is for tokens that are bound to nothing")
    if scope.engines and endpoint.tag not in scope.engines:
        return _refusal(f"the token is bound to {', '.join(scope.engines)}, and this is {endpoint.tag}")
    if actor.role is Role.PUBLISHER:  # its events are checked against its producers and tenants
        return actor
    if scope.app and path.get("app") != scope.app and not endpoint.app_query:
        return _refusal(f"the token is bound to the app {scope.app}, and this answer is not of one app")
    if scope.tenants and not (endpoint.tenant_query or endpoint.tenant_of or endpoint.shared):
        return _refusal("the token is bound to tenants, and this answer is not of one tenant")
    return actor


def of_own_tenant(scope: Scope, tenant_id: str | None) -> Problem | None:
    """Refuse what is of another tenant; what there is not is refused in the same words, so that neither is revealed."""
    if tenant_id in scope.tenants:
        return None
    return _refusal("the token is bound to tenants, and there is no such thing of theirs")


def narrow_query(scope: Scope, endpoint: Endpoint, given: dict[str, str]) -> dict[str, str] | Problem:
    """The query of a request, with the app or tenant that the scope allows."""
    if scope.app and endpoint.app_query:
        return _only(endpoint.app_query, (scope.app,), given)
    if scope.tenants and endpoint.tenant_query:
        return _only(endpoint.tenant_query, scope.tenants, given)
    return given


def _only(parameter: str, allowed: tuple[str, ...], given: dict[str, str]) -> dict[str, str] | Problem:
    asked = given.get(parameter, "") or (allowed[0] if len(allowed) == 1 else "")
    if asked not in allowed:
        return _refusal(f"ask with {parameter}= one of {', '.join(allowed)}")
    return {**given, parameter: asked}


def _refusal(detail: str) -> Problem:
    return Problem(403, "scope_insufficient", "The token's scopes do not reach this", detail)
