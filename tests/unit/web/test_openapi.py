"""The OpenAPI document is valid, holds every endpoint of the table, and the server keeps what it says."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, data, sampled_from
from schemathesis.generation import GenerationMode

from patra.app.wiring import build
from patra.web.asgi import App, app
from patra.web.endpoint import Endpoint
from patra.web.openapi import openapi
from tests.unit.web.served import served, web_settings

LOCAL = {"Host": "localhost"}


@pytest.fixture(scope="module")
def application() -> Iterator[App]:
    patra = build(web_settings())
    application = app(patra)
    yield application
    application.close()
    patra.close(5)


def test_the_document_is_valid_openapi(application: App) -> None:
    schema = schemathesis.openapi.from_dict(openapi(application.endpoints, tokens=True))
    schema.validate()


def test_every_endpoint_of_the_table_is_in_it_and_nothing_else(application: App) -> None:
    document = openapi(application.endpoints, tokens=True)
    documented = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert documented == {(endpoint.method, endpoint.template) for endpoint in application.endpoints}


def test_operation_ids_are_unique_and_every_refusal_is_a_problem(application: App) -> None:
    operations = [
        o for methods in openapi(application.endpoints, tokens=True)["paths"].values() for o in methods.values()
    ]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        refusals = {status: r for status, r in operation["responses"].items() if status >= "400"}
        assert {"500", "503", "504"} <= set(refusals)
        assert {media for refusal in refusals.values() for media in refusal["content"]} == {"application/problem+json"}


def test_a_role_is_asked_for_only_where_tokens_are_configured(application: App) -> None:
    assert openapi(application.endpoints, tokens=True)["paths"]["/loops"]["get"]["security"] == [{"token": []}]
    assert "security" not in openapi(application.endpoints, tokens=False)["paths"]["/loops"]["get"]
    assert "security" not in openapi(application.endpoints, tokens=True)["paths"]["/health"]["get"]


def test_a_path_with_a_converter_is_documented_without_it() -> None:
    endpoint = Endpoint(method="GET", path="/story/{key:path}", handler=print, role=None, summary="A story.")
    operation = openapi([endpoint], tokens=False)["paths"]["/story/{key}"]["get"]
    assert [parameter["name"] for parameter in operation["parameters"]] == ["key"]


def test_the_served_document_is_the_one_of_the_table() -> None:
    with served() as client:
        document = client.get("/openapi.json").json()
        assert set(document["paths"]) >= {"/", "/health", "/ready", "/metrics", "/loops", "/audit", "/openapi.json"}


READS = (
    "/story",
    "/",
    "/health",
    "/ready",
    "/metrics",
    "/loops",
    "/audit",
    "/outbox",
    "/outbox/backlog",
    "/doctor",
    "/tokens",
    "/settings",
    "/openapi.json",
)


@pytest.mark.parametrize("path", READS)
def test_the_server_answers_as_documented_whatever_it_is_asked(application: App, path: str) -> None:
    """Schemathesis in process, good and bad parameters alike; without its pytest plugin, which lags behind pytest."""
    described = schemathesis.openapi.from_asgi("/openapi.json", application, headers=LOCAL)
    operation = described[path]["GET"]

    @given(data())
    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def check(drawn: DataObject) -> None:
        mode = drawn.draw(
            sampled_from(
                [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
                if path in {"/audit", "/outbox"}
                else [GenerationMode.POSITIVE]
            )
        )
        case = drawn.draw(operation.as_strategy(generation_mode=mode))
        case.call_and_validate(headers=LOCAL)

    check()


def test_no_two_endpoints_answer_at_one_address(application: App) -> None:
    names = [(endpoint.method, endpoint.template) for endpoint in application.endpoints]
    assert [name for name in names if names.count(name) > 1] == []


def test_all_reads_are_asked(application: App) -> None:
    own = {endpoint.path for endpoint in application.endpoints if endpoint.tag == "operations" and not endpoint.writes}
    assert set(READS) == own
