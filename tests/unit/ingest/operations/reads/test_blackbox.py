"""Evidence that is handed on: without personal data in what others wrote, and still saying what was read."""

from patra.ingest.operations.reads.blackbox import for_others


def test_windows_and_cursors_of_long_numbers_stay_and_what_people_wrote_is_redacted() -> None:
    evidence = {
        "error": "refused for somebody@example.com",
        "slice_spec": {"bounds": {"from": "13812345678", "to": "15000000000"}},
        "cursorEvents": [{"new_value": "13812345678", "detail": "asked by somebody@example.com"}],
        "body": None,
    }
    shown = for_others(evidence, {"by": "ops", "why": "asked by somebody@example.com"})
    assert shown["slice_spec"] == evidence["slice_spec"]
    assert shown["cursorEvents"][0]["new_value"] == "13812345678"
    assert "somebody@example.com" not in repr(shown)
