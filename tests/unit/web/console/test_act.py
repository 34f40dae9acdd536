"""What is said of an act: its command, and of many what was left as it was."""

import pytest

from patra.web.console.act import Fields, command_of, rest_of
from patra.web.console.acts import ACTS


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ({"event_ids": "a\nb"}, "patra bus replay mail-out a b"),
        ({"event_ids": "a", "type": "job.failed"}, "patra bus replay mail-out a"),
        ({"type": "job.failed"}, "patra bus replay mail-out --type job.failed"),
        ({"error_code": "b_x; rm"}, "patra bus replay mail-out --error-code 'b_x; rm'"),
        ({}, "patra bus replay mail-out --all"),
    ],
)
def test_the_command_of_a_replay_touches_no_more_than_the_form(form: dict[str, str], command: str) -> None:
    assert command_of(ACTS["bus.replay"], Fields({"group": "mail-out", **form})) == command


@pytest.mark.parametrize("name", ["replay-all", "discard-all"])
def test_the_command_of_an_act_on_a_cause_names_the_cause(name: str) -> None:
    act = ACTS[f"bus.{name.replace('-', '_')}"]
    of_cause = command_of(act, Fields({"group": "mail-out", "type": "job.failed", "error_code": "b_x"}))
    assert of_cause.startswith(f"patra bus {name} mail-out --type job.failed --error-code b_x ")
    assert "--type" not in command_of(act, Fields({"group": "mail-out", "type": "", "error_code": ""}))


def test_what_an_act_on_many_left_is_counted_once_each() -> None:
    assert rest_of(["a", "b", "b"], 2, "not open any more") == ""
    assert rest_of(["a", "b", "b"], 1, "not open any more") == " 1 was left: not open any more."
    assert rest_of(["a", "b", "c"], 1, "not open any more") == " 2 were left: not open any more."
