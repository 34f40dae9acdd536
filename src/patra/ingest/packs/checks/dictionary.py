"""Every code of the sections must be an item of the system dictionary (ch. 3.3.3, 4.17 no. 7)."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from patra.ingest.packs.checks.draft import Dictionary, Draft
from patra.ingest.packs.problems import Problem, TreePath
from patra.ingest.vocabulary.codes import DICTIONARY, Code, dict_type
from patra.ingest.vocabulary.reasons import Reason

BUILT_IN: Dictionary = {entry.code: frozenset(code.value for code in entry.items) for entry in DICTIONARY}


def check_dictionary(draft: Draft, dictionary: Dictionary) -> Iterator[Problem]:
    yield from _codes(draft, draft.at, (), dictionary)
    for name in ("role", "access"):
        code = cast("Code", getattr(draft.endpoint, name))
        yield from _code(draft, code, ("endpoints", draft.name, name), dictionary, whole=True)
    yield from _code(draft, draft.operation, ("endpoints", draft.name), dictionary, whole=True)


def _codes(draft: Draft, value: Any, path: TreePath, dictionary: Dictionary) -> Iterator[Problem]:
    match value:
        case Code():
            yield from _code(draft, value, path, dictionary)
        case msgspec.Struct():
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            for name, wire in names:  # not `structs.fields`, which reads the annotations of the class each time
                yield from _codes(draft, getattr(value, name), (*path, wire), dictionary)
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                yield from _codes(draft, item, (*path, str(key)), dictionary)
        case list() | tuple():
            for index, item in enumerate(cast("list[Any]", value)):
                yield from _codes(draft, item, (*path, index), dictionary)
        case _:
            pass


def _code(
    draft: Draft, code: Code, path: TreePath, dictionary: Dictionary, *, whole: bool = False
) -> Iterator[Problem]:
    entry = dict_type(type(code))
    if entry is None or code.value in dictionary.get(entry.code, frozenset()):
        return
    message = f"the dictionary {entry.code} has no item {code.value}, or it is disabled"
    advice = "enable the item in sys_dict_item, or use another code"
    yield (
        draft.source.problem(Reason.CODE_UNKNOWN, path, message, advice)
        if whole
        else draft.error(Reason.CODE_UNKNOWN, path, message, advice)
    )
