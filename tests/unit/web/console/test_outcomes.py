"""One act for one form: what is sent again is not done again, what is sent with something else in it is another act."""

import pytest

from patra.web.console.outcomes import Outcome, Outcomes


def test_an_act_that_failed_may_be_sent_again():
    outcomes, done = Outcomes(), Outcome(text="done", target="/console/")

    def fails() -> Outcome:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        outcomes.once("a", fails)
    assert outcomes.once("a", lambda: done) == (done, True)
    assert outcomes.once("a", fails) == (done, False)
    assert (outcomes.text("a"), outcomes.text("b")) == ("done", "")


def test_a_kept_form_with_something_else_in_it_is_another_act():
    outcomes = Outcomes()
    first, second = (Outcome(text=text, target="/console/") for text in ("first", "second"))
    assert outcomes.once("a", lambda: first, ("loop.wake", {"name": "x"})) == (first, True)
    assert outcomes.once("a", lambda: second, ("loop.wake", {"name": "y"})) == (second, True)
    assert outcomes.once("a", lambda: first, ("loop.wake", {"name": "y"})) == (second, False)
    assert outcomes.text("a") == "second"
