import pickle

import pytest

from patra.kernel import errors
from patra.kernel.errors import (
    ConfigInvalid,
    Fenced,
    Invalid,
    NotCanonical,
    PatraError,
    Permanent,
    StoreBusy,
    Transient,
    count_phrase,
)


def every_error() -> list[type[PatraError]]:
    """All that the module declares; a subclass elsewhere (a test's, a private one) stands under one of them."""
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PatraError)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_a_code_and_a_detail(kind: type[PatraError]) -> None:
    error = kind("some_code", "what happened")
    assert (error.code, error.detail) == ("some_code", "what happened")
    assert "some_code" in str(error)
    assert "what happened" in str(error)


@pytest.mark.parametrize("kind", every_error())
def test_every_error_is_drawn_in_the_tree_of_the_docstring(kind: type[PatraError]) -> None:
    assert errors.__doc__ is not None
    assert kind.__name__ in errors.__doc__


def test_every_error_but_the_root_is_either_transient_or_permanent() -> None:
    for kind in every_error()[1:]:
        assert issubclass(kind, Transient) != issubclass(kind, Permanent)


def test_a_busy_store_is_worth_another_try_and_a_lost_lease_is_not() -> None:
    assert issubclass(StoreBusy, Transient)
    assert issubclass(Fenced, Permanent)


def test_invalid_says_where_and_what_to_do() -> None:
    error = ConfigInvalid("unknown_setting", "no such setting", place="patra.toml:3", advice="did you mean port?")
    assert (error.place, error.advice) == ("patra.toml:3", "did you mean port?")
    assert str(error) == "patra.toml:3: unknown_setting: no such setting (did you mean port?)"


@pytest.mark.parametrize(
    "error",
    [
        StoreBusy("store_busy", "locked"),
        Invalid("bad", "it is", place="here", advice="do this"),
        NotCanonical("not_json", "set", path="$.a"),
    ],
)
def test_errors_cross_process_boundaries_whole(error: PatraError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_number_agrees_with_its_noun() -> None:
    assert [count_phrase(number, "click") for number in (0, 1, 2)] == ["0 clicks", "1 click", "2 clicks"]
