"""Rows of the HTTP interface: what a group gives to each of its endpoints."""

from typing import Any

import msgspec
import pytest

from patra.app.access.actor import Role
from patra.web.endpoint import Endpoint, EndpointGroup


def _handler(request: object) -> None:
    del request


async def _raw(request: object) -> Any:
    del request


def test_a_group_lets_viewers_read_and_operators_act_under_its_tag() -> None:
    group = EndpointGroup("bus")
    read = group.get("/bus/x", _handler, "Read", dict)
    act = group.post("/bus/x", _handler, "bus.x", "Act")
    assert (read.method, read.role, read.tag, read.act) == ("GET", Role.VIEWER, "bus", "")
    assert (act.method, act.role, act.tag, act.act) == ("POST", Role.OPERATOR, "bus", "bus.x")


def test_what_is_said_of_one_endpoint_goes_before_what_is_usual() -> None:
    act = EndpointGroup("bus").post("/bus/x", _handler, "bus.x", "Act", role=Role.ADMIN, method="DELETE", status=202)
    assert (act.method, act.role, act.status) == ("DELETE", Role.ADMIN, 202)


def test_an_act_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must name its act"):
        EndpointGroup("bus").post("/bus/x", _handler, "", "Act")


@pytest.mark.parametrize("narrowed_by", ["app_query", "tenant_query"])
def test_a_parameter_that_narrows_nothing_is_refused(narrowed_by: str) -> None:
    class Query(msgspec.Struct):
        owner: str = ""

    more: dict[str, Any] = {narrowed_by: "owner"}
    assert EndpointGroup("bus").get("/bus/x", _handler, "Read", dict, Query, **more).query is Query
    with pytest.raises(ValueError, match="owner narrows nothing"):
        EndpointGroup("bus").get("/bus/x", _handler, "Read", dict, **more)
    with pytest.raises(ValueError, match="owner narrows nothing"):  # a raw handler reads the query as it was sent
        Endpoint(method="GET", path="/bus/x", raw=_raw, role=Role.VIEWER, summary="Read", query=Query, **more)


def test_a_field_that_no_endpoint_has_is_refused() -> None:
    with pytest.raises(TypeError):
        EndpointGroup("bus").get("/bus/x", _handler, "Read", dict, rolle=Role.ADMIN)
    assert "rolle" not in Endpoint.__struct_fields__
