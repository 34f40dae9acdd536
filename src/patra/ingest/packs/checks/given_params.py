"""Values of a pack's parameters, as a trigger or a schedule gives them: known, there, and as their rules say.

What a trigger says stands in no file: the problem names the argument, not a place in the pack.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem, Source, TreePath, unknown_name
from patra.ingest.packs.sections import Param
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.pattern import pattern


def given_params(draft: Draft, given: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the values of a trigger, or missing among them."""
    known = {**draft.at.params, **(draft.detail.at.params if draft.detail else {})}
    for name, value in given.items():
        yield from given_param(draft, name, value, Source(), ("params", name))
    for name, param in known.items():
        if param.required and given.get(name, param.default) is None:
            message = f"{draft.pack.source} {draft.name} needs a value for the parameter {name!r}"
            yield Source().problem(Reason.PARAM_INVALID, ("params", name), message, f"--param {name}=…")


def given_param(draft: Draft, name: str, value: Any, source: Source, path: TreePath) -> Iterator[Problem]:
    """What is wrong with one value, which stands at `path` of `source`."""
    known: dict[str, Param] = {**draft.at.params, **(draft.detail.at.params if draft.detail else {})}
    param = known.get(name)
    if param is None:
        message = f"{draft.pack.source} {draft.name} has no parameter {name!r}"
        yield source.problem(Reason.PARAM_INVALID, path, message, unknown_name(name, known))
        return
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    for text in (str(item) for item in items):
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            yield source.problem(Reason.PARAM_INVALID, path, f"{name} holds a character that no text can hold")
        elif len(text) > param.max_length:
            yield source.problem(Reason.PARAM_INVALID, path, f"{name} is longer than {param.max_length} characters")
        elif param.values and text not in param.values:
            yield source.problem(
                Reason.PARAM_INVALID, path, f"{name} cannot be {text!r}", f"one of {', '.join(param.values)}"
            )
        elif param.pattern and param.expr is None and not pattern(param.pattern).matches(text):
            yield source.problem(Reason.PARAM_INVALID, path, f"{name} {text!r} does not match {param.pattern}")
