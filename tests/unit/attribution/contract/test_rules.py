"""Files of rules for a what-if: what they may say, and how rubbish is refused."""

from pathlib import Path

import pytest

from patra.attribution.contract.rules import LIVE_RULES, Rules, read_rules
from patra.kernel.clock import DAY, SECOND
from patra.kernel.errors import Invalid


def test_a_file_of_rules_changes_what_it_names(tmp_path: Path):
    path = tmp_path / "next.toml"
    path.write_text('name = "v2"\nclosure_wait_seconds = 300\n[dedup_window_days]\nclick = 7\n')
    found = read_rules(path)
    assert found == Rules(name="v2", closure_wait=300 * SECOND, windows=LIVE_RULES.windows | {"click": 7 * DAY})


@pytest.mark.parametrize(
    "text",
    [
        "closure_wait_seconds = 3",
        'name = "x"\nclosure_wait_seconds = 0',
        'name = "x"\nclosure_wait = 3',
        'name = "x"\n[dedup_window_days]\nview = 3',
        "name = ",
        "\xff",
    ],
)
def test_a_file_that_is_no_rules_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "next.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(Invalid, match="rules_invalid"):
        read_rules(path)
