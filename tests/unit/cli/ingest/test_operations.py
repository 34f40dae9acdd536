"""Every act of an operator on ingest is reported in a sentence."""

import re
from pathlib import Path

import patra
from patra.cli.ingest.operations import OUTCOMES, sentence
from patra.ingest.planning.operations import Act

SOURCE = Path(patra.__file__).parent


def test_every_act_has_a_sentence_and_every_sentence_an_act() -> None:
    files = [*SOURCE.glob("ingest/**/*.py"), *SOURCE.glob("cli/ingest/*.py")]
    acts = {name for file in files for name in re.findall(r'"(ingest\.\w+)"', file.read_text("utf-8"))}
    assert OUTCOMES.keys() == acts & OUTCOMES.keys()
    for file in files:
        for name in re.findall(r'Act\(\s*act=f?"(ingest\.[\w{}]+)"', file.read_text("utf-8")):
            assert name in OUTCOMES or "{" in name, name


def test_an_act_that_changed_nothing_says_so() -> None:
    done = Act(act="ingest.pause", subject="pubmed/search", changed=0, detail={})
    assert sentence(done) == "nothing changed: pause pubmed/search had nothing to do"
    paused = Act(act="ingest.pause", subject="pubmed/search", changed=1, detail={})
    assert sentence(paused) == "pubmed/search is paused"
