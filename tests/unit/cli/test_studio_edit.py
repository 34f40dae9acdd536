from pathlib import Path

import pytest

from patra.cli.studio_edit import read_edits, shot_id_of
from patra.kernel.errors import Invalid
from patra.studio.script.edits import ShotEdit


def test_a_shot_is_named_by_its_number_or_its_id():
    assert [shot_id_of(given) for given in ("3", "shot_0003", "0012", "x")] == [
        "shot_0003",
        "shot_0003",
        "shot_0012",
        "x",
    ]


def test_edits_of_a_storyboard_are_read_and_others_refused(tmp_path: Path):
    file = tmp_path / "edits.json"
    file.write_text('{"shot_0002": {"place": "kitchen", "people": ["Tom"], "seconds": 4}}')
    assert read_edits(str(file)) == {"shot_0002": ShotEdit(place="kitchen", people=("Tom",), seconds=4.0)}
    for text in ("{", "[]", '{"shot_0002": {"plaice": "sea"}}', '{"shot_0002": 3}'):
        file.write_text(text)
        with pytest.raises(Invalid, match="s_edit_invalid"):
            read_edits(str(file))
