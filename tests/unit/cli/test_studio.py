from rich.console import Console

from patra.cli.studio_view import picture
from patra.studio.pipeline import Progress
from patra.studio.views import ShotLine


def drawn(width: int, states: list[str], **fields: object) -> str:
    given = {
        "run_id": "run_1", "task_id": "t", "title": "纸船 The Boat", "stage": "executing", "epoch": 1, "progress": 47,
        "reason_code": "", "reason": "", "shots": len(states), "film_uri": None, "film_ms": None, "left_out": [],
        "cost_micros": 0, "work_ms": 0, "created_at": "", "changed_at": "",
        "jobs": {"audio": {"succeeded": 3}, "video": {"succeeded": 1, "claimed": 1, "failed": 1}},
    }  # fmt: skip
    console = Console(width=width, record=True, file=None, quiet=False, force_terminal=False)
    lines = [ShotLine(shot_id=f"shot_{k}", state=state) for k, state in enumerate(states)]
    with console.capture() as said:
        console.print(picture(Progress(**(given | fields)), lines, 83.4))
    return said.get()


def test_the_view_tells_stage_time_jobs_and_every_shot():
    said = drawn(80, ["made", "at_work", "failed", "waiting"])
    assert "纸船 The Boat  executing  47%  1:23" in said
    assert "1/3  1 at work  1 failed" in said
    assert "■▣✗·  1/4" in said


def test_a_narrow_terminal_cuts_no_shot_off():
    said = drawn(40, ["waiting"] * 300)
    assert said.count("·") == 300


def test_before_there_is_a_plan_the_view_is_one_line():
    assert drawn(80, [], jobs={}, shots=0, stage="planning").strip().count("\n") == 0
