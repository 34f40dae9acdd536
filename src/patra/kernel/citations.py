"""Marks that cite the specification (`§3.8.19`, `ch. 10.3`, `C§5`, `B3`), for pages whose readers do not need them."""

import re

_MARK = r"(?:C?§\d+(?:\.\d+)*|ch\. \d+(?:\.\d+)*|\d+(?:\.\d+)*(?: no\. \d+)?|[FIBA]\d{1,2})"
_CITATION = re.compile(rf" ?\((?:ingest )?(?=C?§|ch\. |[FIBA]\d){_MARK}(?:, {_MARK})*\)")


def without_citations(text: str) -> str:
    """The text without its citations in brackets."""
    return _CITATION.sub("", text)
