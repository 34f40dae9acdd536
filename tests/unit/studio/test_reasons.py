from pathlib import Path

from patra.studio.reasons import R

ROOT = Path(__file__).parents[3]


def test_every_code_is_documented():
    page = (ROOT / "docs" / "reference" / "studio.md").read_text("utf-8")
    for reason in R:
        assert f"| `{reason.value}` | {reason.text} |" in page


def test_every_code_is_given_somewhere():
    patra = ROOT / "src" / "patra"
    files = [*(patra / "studio").rglob("*.py"), patra / "web" / "api" / "studio.py", patra / "cli" / "studio.py"]
    source = "\n".join(file.read_text("utf-8") for file in files if file.name != "reasons.py")
    unused = [reason.name for reason in R if f"R.{reason.name}" not in source]
    assert unused == []
