"""Where history past its retention lies: a folder on this machine, or object storage (ch. 14.11)."""

from patra.kernel.files import FilePlace, StorageCodes, file_place

CODES = StorageCodes(
    missing="i_extra_missing",
    refused="i_history_refused",
    unavailable="i_history_unavailable",
    damaged="i_history_damaged",
)
SETTING = "ingest.history_url"

HistoryPlace = FilePlace


def history_place(folder: str, url: str) -> HistoryPlace | None:
    """The place that the settings name; None where history is deleted."""
    return file_place(folder, url, CODES, setting=SETTING)
