"""Scopes that nothing would hold a token to are refused when it is made."""

from collections.abc import Sequence

import pytest

from patra.app.access.actor import Role, Scope
from patra.app.access.tokens import add_token, check_scope, revoke_token, rotate_token, tokens
from patra.kernel.clock import HOUR
from patra.kernel.db import migrate, open_database
from patra.kernel.errors import Invalid

REFUSED = [
    (Role.PUBLISHER, {}, "producers"),
    (Role.PUBLISHER, {"tenants": ("acme",)}, "producers"),
    (Role.PUBLISHER, {"app": "shop", "tenants": ("acme",)}, "tenants"),
    (Role.PUBLISHER, {"app": "shop", "engines": ("bus",)}, "engines"),
    (Role.VIEWER, {"producers": ("Gateway",)}, "producers"),
    (Role.VIEWER, {"groups": ("tasks",)}, "groups"),
    (Role.OPERATOR, {"groups": ("tasks",)}, "groups"),
    (Role.PUBLISHER, {"groups": ("",)}, "scope"),
    (Role.PUBLISHER, {"groups": ("a/b",)}, "groups"),
    (Role.PUBLISHER, {"groups": ("webhook.shop",)}, "groups"),
    (Role.VIEWER, {"app": "shop", "tenants": ("acme",)}, "tenants"),
    (Role.VIEWER, {"engines": ("kitchen",)}, "engines"),
    (Role.VIEWER, {"tenants": ("",)}, "scope"),
    (Role.VIEWER, {"app": "x" * 300}, "scope"),
    (Role.OPERATOR, {"app": "shop"}, "role"),
    (Role.ADMIN, {"tenants": ("acme",)}, "role"),
]


@pytest.mark.parametrize(("role", "scope", "place"), REFUSED)
def test_a_scope_that_does_not_fit_the_role_is_refused(role, scope, place):
    with pytest.raises(Invalid) as caught:
        check_scope(role, Scope(**scope))
    assert (caught.value.code, caught.value.place) == ("token_scope_invalid", place)


def test_a_group_is_consumed_by_tokens_of_the_same_tenants_only():
    db = open_database("sqlite:///:memory:")
    migrate(db, ["patra.kernel", "patra.app"])

    def new(name: str, configured: Sequence[tuple[str, Scope]] = (), **scope: tuple[str, ...]) -> None:
        bound = Scope(**scope)
        db.run(lambda tx: add_token(tx, name, Role.PUBLISHER, bound, by="t", now=1, configured=configured))

    new("one", groups=("tasks",), tenants=("acme",))
    new("two", groups=("tasks", "more"), tenants=("acme",))
    new("three", groups=("others",), tenants=("beta",))
    for groups, tenants in ((("tasks",), ("beta",)), (("tasks",), ()), (("*",), ("acme",))):
        with pytest.raises(Invalid, match="consumes for the group") as caught:
            new("four", groups=groups, tenants=tenants)
        assert (caught.value.code, caught.value.place) == ("token_scope_invalid", "groups")
    other = [("gateway", Scope(groups=("uploads",), tenants=("beta",)))]
    with pytest.raises(Invalid, match="gateway consumes for the group uploads"):  # a publisher of the settings
        new("four", other, groups=("uploads",), tenants=("acme",))
    db.run(lambda tx: revoke_token(tx, "three", now=2))
    new("five", groups=("*",), tenants=("acme",))
    db.close()


def test_names_lifetimes_and_overlaps_are_checked():
    db = open_database("sqlite:///:memory:")
    migrate(db, ["patra.kernel", "patra.app"])

    def code(work) -> str:
        with pytest.raises(Invalid) as caught:
            db.run(work)
        return caught.value.code

    for name in ("", "a b", "-x", "x\x1b[2J", "y" * 65):
        assert code(lambda tx, name=name: add_token(tx, name, Role.VIEWER, by="t", now=1)) == "token_name_invalid"
    assert code(lambda tx: add_token(tx, "v", Role.VIEWER, by="t", now=1, lifetime=0)) == "token_lifetime_invalid"
    assert code(lambda tx: rotate_token(tx, "v", by="t", now=1, overlap=1)) == "token_not_found"
    db.run(lambda tx: add_token(tx, "v", Role.VIEWER, by="t", now=1, lifetime=HOUR))
    assert code(lambda tx: add_token(tx, "v", Role.VIEWER, by="t", now=2)) == "token_name_taken"
    assert code(lambda tx: rotate_token(tx, "v", by="t", now=2, overlap=-1)) == "token_overlap_invalid"
    db.run(lambda tx: rotate_token(tx, "v", by="t", now=2, overlap=2 * HOUR))
    assert [one.state for one in db.read(lambda tx: tokens(tx, 1 + HOUR))] == ["expired", "active"]  # never prolonged
    assert db.run(lambda tx: revoke_token(tx, "v", now=3)) == 2
    db.run(lambda tx: add_token(tx, "v", Role.VIEWER, by="t", now=4))  # the name is free again
    db.close()
