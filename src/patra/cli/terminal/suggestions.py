"""What was probably meant by a word that is no command, option or choice."""

from collections.abc import Collection, Iterator
from typing import Any, cast

import click

MEANT = {
    "version": "patra --version",
    "serve": "patra up",
    "server": "patra up",
    "start": "patra up",
    "run": "patra up",
    "status": "patra doctor",
    "init": "patra migrate",
    "settings": "patra config show",
    "harvest": "patra ingest run",
    "publish": "patra bus publish",
    "bus events": "patra bus tail",
    "bus event": "patra bus timeline",
    "bus log": "patra bus tail",
    "bus types": "patra bus catalogue",
    "bus contracts": "patra bus catalogue",
    "attribution events": "patra attribution list",
    "config get": "patra config show",
}
"""Words that other programs use, and the command that does it here."""
MAX_SHOWN = 2


def nearest(word: str, names: Collection[str]) -> list[str]:
    """The names that a slip of the finger or a missing end explains, the nearest first; mostly none or one.

    A slip is a letter too many, too few, wrong, or two that changed places: one in a short word, two in a longer one.
    """
    typed = _bare(word)
    slips = 0 if len(typed) < 3 else 1 if len(typed) < 6 else 2
    far = {name: _distance(typed, _bare(name)) for name in names}
    near = [name for name, distance in far.items() if distance <= slips]
    if not near and len(typed) >= 4:  # a beginning with a slip in it
        near = [name for name in names if _distance(typed, _bare(name)[: len(typed)]) <= 1]
    if not near and len(typed) >= 2:
        near = [name for name in names if _bare(name).startswith(typed)]
    if not near:
        return []
    best = min(far[name] for name in near)
    return sorted(name for name in near if far[name] == best)[:MAX_SHOWN]


def did_you_mean(names: Collection[str]) -> str:
    """The question, or nothing."""
    return f"Did you mean {' or '.join(names)}?" if names else ""


def for_command(ctx: click.Context, word: str, names: Collection[str]) -> str:
    """What to do about a word that is no command of this group."""
    if near := nearest(word, names):
        return did_you_mean(near)
    here = ctx.command_path
    if meant := f"{here} --help" if word == "help" else MEANT.get(" ".join([*here.split()[1:], word])):
        return did_you_mean([f"`{meant}`"])
    there: dict[str, list[str]] = {}
    for path in _paths(ctx, ctx.command):
        there.setdefault(path.rpartition(" ")[2], []).append(path)
    found = [path for name in nearest(word, there) for path in there[name]]
    if found and len(found) <= MAX_SHOWN:
        return did_you_mean([f"`{path}`" for path in found])
    if isinstance(ctx.command, click.Group) and ctx.command.invoke_without_command:
        return f"`{here}` alone shows all, `{here} --help` lists its commands."
    return f"`{here} --help` lists them."


def explain_error(error: click.ClickException) -> click.ClickException:
    """The error with a suggestion where click has none, or a bad one."""
    match error:
        case click.NoSuchOption() if error.ctx is not None:
            options = [name for one in error.ctx.command.params for name in one.opts if name.startswith("--")]
            meant = did_you_mean(nearest(error.option_name, [*options, "--help"]))
            if not meant and isinstance(error.ctx.command, click.Group):
                meant = "Options of a command stand behind its name."
            return click.UsageError(f"There is no option {error.option_name}. {meant}".rstrip(), error.ctx)
        case click.MissingParameter() if names := _choices(error):
            return click.UsageError(f"{_mistyped_name(error)} is missing: one of {', '.join(names)}.", error.ctx)
        case click.BadParameter() if error.message[:1] == "'" and (names := _choices(error)):
            word = error.message[1:].partition("'")[0]
            said = did_you_mean(nearest(word, names)) or f"It is one of {', '.join(names)}."
            return click.UsageError(f"{_mistyped_name(error)} cannot be {word!r}. {said}", error.ctx)
        case click.BadParameter() if "range" in error.message and (bounds := _bounds(error)):
            return click.UsageError(f"{_mistyped_name(error)} takes {bounds}.", error.ctx)
        case _:
            return error


def _choices(error: click.BadParameter) -> list[str]:
    kind: Any = None if error.param is None else error.param.type
    if not isinstance(kind, click.Choice):
        return []
    known = cast("click.Choice[Any]", kind)
    return [known.normalize_choice(choice, None) for choice in known.choices]


def _bounds(error: click.BadParameter) -> str:
    """The numbers that a parameter takes, in words; an upper bound that nobody meets is left out."""
    kind: Any = None if error.param is None else error.param.type
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    what = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    least = f"of {kind.min} or more" if kind.min is not None else ""
    most = kind.max is not None and kind.max < 2**31 - 1
    return f"{what} {f'from {kind.min} to {kind.max}' if most else least}".rstrip()


def _mistyped_name(error: click.BadParameter) -> str:
    param = error.param
    if isinstance(param, click.Option):
        return param.opts[0]
    return (param.metavar or (param.name or "").upper()) if param else ""


def _paths(ctx: click.Context, command: click.Command) -> Iterator[str]:
    """Every command of the tree with its way there, `patra attribution rejects`."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(ctx):
        child = command.get_command(ctx, name)
        if child is not None and not child.hidden:
            below = click.Context(child, info_name=name, parent=ctx)
            yield below.command_path
            yield from _paths(below, child)


def _bare(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _distance(one: str, other: str) -> int:
    """How many slips lie between two words (optimal string alignment)."""
    if abs(len(one) - len(other)) > 2:  # more than any slip that counts
        return 3
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            steps = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                steps = min(steps, last[j - 2] + 1)
            row.append(steps)
    return row[-1]
