from pathlib import Path

from patra.studio.vocabulary.reasons import Reason

ROOT = Path(__file__).parents[4]


def test_every_code_is_documented():
    page = (ROOT / "docs" / "reference" / "studio.md").read_text("utf-8")
    for reason in Reason:
        assert f"| `{reason.value}` | {reason.text} |" in page


def test_every_code_is_given_somewhere():
    patra = ROOT / "src" / "patra"
    files = [*(patra / "studio").rglob("*.py"), *(patra / "web" / "api" / "studio").glob("*.py")]
    files += (patra / "cli").glob("studio*.py")
    source = "\n".join(file.read_text("utf-8") for file in files if file.name != "reasons.py")
    unused = [reason.name for reason in Reason if f"Reason.{reason.name}" not in source]
    assert unused == []
