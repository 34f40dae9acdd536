"""The console asks the HTTP interface, in process: same table, same roles, same checks of values, same audit.

A page or an act names an endpoint by its method and path as `/openapi.json` writes them. So the console can do nothing
that HTTP cannot, and what an operator does here leaves the same row in the audit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.app.access.actor import Actor
from patra.app.wiring import Patra
from patra.kernel.errors import PatraError
from patra.web.dispatch import run_handler, unexpected_problem
from patra.web.endpoint import Endpoint, Reply, Request
from patra.web.problem import Problem, problem_of


class Number(str):
    """A number that is not an integer, with the digits it came with."""

    __slots__ = ()


class Refusal(Exception):  # noqa: N818  what it is, not that it is one
    """The interface answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


class Calls:
    """The table of endpoints as functions."""

    def __init__(self, patra: Patra, endpoints: Sequence[Endpoint]) -> None:
        self.patra = patra
        self._endpoints = {(endpoint.method, endpoint.template): endpoint for endpoint in endpoints}
        self._decoder = msgspec.json.Decoder(Any, float_hook=Number)

    def endpoint(self, method: str, template: str) -> Endpoint:
        return self._endpoints[method, template]

    def has(self, method: str, template: str) -> bool:
        return (method, template) in self._endpoints

    def may(self, actor: Actor, method: str, template: str) -> bool:
        """Whether the actor may ask for this; False too where this process has no such endpoint."""
        found = self._endpoints.get((method, template))
        return found is not None and (found.role is None or actor.role.allows(found.role))

    def ask(
        self,
        actor: Actor,
        method: str,
        template: str,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer as plain data, numbers with all their digits. Raises Refusal where it is a problem."""
        endpoint = self.endpoint(method, template)
        if not self.may(actor, method, template):
            role = endpoint.role.value if endpoint.role else ""
            title = f"This needs the role {role}"
            raise Refusal(Problem(403, "role_insufficient", title, f"You are signed in as {actor.role.value}."))
        try:
            answer = self._answer(endpoint, actor, path or {}, query or {}, body)
        except PatraError as error:
            raise Refusal(problem_of(error)) from error
        except msgspec.ValidationError as error:
            raise Refusal(Problem(422, "body_invalid", "A field is not of the shape asked for", str(error))) from error
        except Exception as error:
            raise Refusal(unexpected_problem(error, f"console: {endpoint.name}")) from error
        if isinstance(answer, Problem):
            raise Refusal(answer)
        if isinstance(answer, Reply):
            answer = answer.body
        return answer if isinstance(answer, bytes) else self._decoder.decode(msgspec.json.encode(answer))

    def _answer(
        self,
        endpoint: Endpoint,
        actor: Actor,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        body: Mapping[str, Any] | None,
    ) -> Any:
        given = {name: value for name, value in query.items() if value not in ("", None)}
        asked = Request(
            patra=self.patra,
            actor=actor,
            act=endpoint.act,
            path=path,
            query=msgspec.convert(given, endpoint.query, strict=False) if endpoint.query is not None else None,
            body=msgspec.convert(body or {}, endpoint.request, strict=False) if endpoint.request is not None else b"",
        )
        return run_handler(endpoint, asked)
