"""Scalars of a pack by YAML 1.2: no surprises such as `no` for false or `12:30` for a number."""

import math
import re
from typing import Any, cast

import yaml

_INT = re.compile(r"[-+]?[0-9][0-9_]*")


_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def is_null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in {"", "~", "null", "Null", "NULL"}


def scalar_value(node: yaml.ScalarNode) -> Any:
    """A scalar by YAML 1.2's core rules: `no` and `12:30` are text."""
    text = cast("str", node.value)
    if node.style is not None:
        return text
    if is_null(node):
        return None
    if text in {"true", "True", "TRUE"}:
        return True
    if text in {"false", "False", "FALSE"}:
        return False
    if _INT.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and math.isfinite(float(text.replace("_", ""))):
        return float(text.replace("_", ""))
    return text


def spelling(pattern: str) -> str:
    """What a name is made of, by the two patterns that there are for names."""
    if "." in pattern:
        return "a letter first, then letters, digits, `_`, `.` and `-`"
    return "a letter or `_` first, then letters, digits and `_`"
