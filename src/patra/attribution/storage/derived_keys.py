"""What a row shows of the keys of its decisions without being read: texts that stand in it, and hashes that do not.

What the index by key has not reached yet is looked through row by row. A row with the text of a key is found by the
text; for a key that is a hash every decision of every row would have to be read. So the beginnings of all these hashes
of a row are kept in memory once it was asked for one of them: rows do not change, and few wait for the index.
"""

import re
from functools import lru_cache

from patra.attribution.contract import keys
from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION
from patra.attribution.decision.decisions import attribution_key_of, billing_key_of
from patra.attribution.decision.output_records import record_keys
from patra.attribution.storage.decision_codec import unpack_decisions

MAX_ROWS = 1024
"""Rows whose hashes are kept, some 9 KB each with the row."""
_PLAIN_TEXT = re.compile(r"[ !#-\[\]-{}~]+")
"""What stands in the store as it is: neither escaped in JSON nor the separator of a key that is put together."""
_CYCLE = re.compile(r"#[0-9]+\Z")
"""The end of a dedup key in a later cycle (F9), which the row of the decision has as a number of its own."""
_FACTS = ("bf_", "af_")
_BEGINNING = 6
"""Bytes of a hash that are kept; a decision is read in full before it is taken for the one that is asked for."""


def stored_text(key: str) -> bytes | None:
    """A text that every row with a decision of this key holds, but for one whose key is a hash (`may_have`).

    A key is a text of the decision, or some of them put together by `|`: the longest part of it stands there.
    """
    stored = key.partition("|")[0] if key.startswith("fe_") else key
    kind, _, of_attribution = stored.partition("|")
    if kind.startswith("attr_") and of_attribution.startswith(f"{keys.DEDUP_VERSION}:"):
        stored = of_attribution
    if stored.endswith((f"|{BILLABLE_IMPRESSION}", f"|{BILLABLE_CLICK}")):
        stored = stored.rpartition("|")[0]
    if stored.startswith(f"{keys.DEDUP_VERSION}:"):
        stored = _CYCLE.sub("", stored)
        stored = stored.partition("|")[2] or stored  # what stands before it, every event of an app has
    parts: list[str] = _PLAIN_TEXT.findall(stored)
    return max(parts, key=len).encode() if parts else None


def beginning_of(key: str) -> bytes | None:
    """The beginning of the hash that a key is; None if it is none of these keys."""
    text = key[3:] if key.startswith(_FACTS) else key if len(key) == 64 else ""
    try:
        return bytes.fromhex(text[: 2 * _BEGINNING]) or None
    except ValueError:
        return None


def may_have(item: int, body: bytes, beginning: bytes) -> bool:
    """Whether a decision of a row can have a key whose hash begins so."""
    return beginning in _beginnings(item, body)


@lru_cache(maxsize=MAX_ROWS)
def _beginnings(item: int, body: bytes) -> bytes:
    found: list[str] = []
    for _, decision in unpack_decisions(item, body):
        found += record_keys(decision)
        billing, attribution = billing_key_of(decision), attribution_key_of(decision)
        if billing is not None:
            found.append(keys.billable_fact_id(billing)[3:])
        if attribution is not None:
            found.append(keys.attribution_fact_id(attribution)[3:])
    return b"".join(bytes.fromhex(key[: 2 * _BEGINNING]) for key in found)
