"""Help: whole summaries, examples that fit the terminal, and a suggestion for a mistyped command at every level."""

import re
import textwrap
from collections.abc import Mapping
from importlib import import_module
from itertools import groupby
from typing import ClassVar

import click

from patra.cli.terminal.suggestions import for_command


class HelpFormatter(click.HelpFormatter):
    """Help whose examples fit the terminal: a comment that does not fit goes below its command."""

    def write_text(self, text: str) -> None:
        room = self.width - self.current_indent
        blocks = [_fit_block(block, room) if block.startswith("\b\n") else block for block in text.split("\n\n")]
        super().write_text("\n\n".join(blocks))


click.Context.formatter_class = HelpFormatter  # of every command, also of those that no group of ours made


class Group(click.Group):
    """A group whose help shows the whole first sentence of each command, and that knows what was nearly typed."""

    sections: ClassVar[Mapping[str, str]] = {}
    """Titles, and the commands below each in the order in which they are used; without any, all are in one list."""

    def summary(self, ctx: click.Context, name: str) -> str | None:
        """The line of a command in the list; None hides it."""
        command = self.get_command(ctx, name)
        return None if command is None or command.hidden else first_sentence(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in (self.sections or {"Commands": " ".join(self.list_commands(ctx))}).items():
            lines = [(name, self.summary(ctx, name)) for name in names.split()]
            rows = [(name, line) for name, line in lines if line is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command {args[0]!r}. {for_command(ctx, args[0], names)}", ctx)
        return super().resolve_command(ctx, args)


Group.group_class = Group  # a group inside a group suggests names, too, and has no commands of its parent


class LazyGroup(Group):
    """A group with commands in modules of their own, imported when they are asked for."""

    elsewhere: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Name: module and attribute, and the line for `--help`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.elsewhere:
            module, _, name = self.elsewhere[cmd_name][0].partition(":")
            return getattr(import_module(module), name)
        return super().get_command(ctx, cmd_name)

    def summary(self, ctx: click.Context, name: str) -> str | None:
        return self.elsewhere[name][1] if name in self.elsewhere else super().summary(ctx, name)


def _fit_block(block: str, room: int) -> str:
    """A block that is printed as it is written, except for lines that are too long for the terminal."""
    lines: list[str] = []
    for indented, group in groupby(block.splitlines(), lambda line: line.startswith(" ")):
        written = list(group)
        if all(len(line) <= room for line in written):
            lines += written
        elif indented and all(line.lstrip()[0].isdecimal() for line in written):
            lines += [part for line in written for part in (_example(line, room) if len(line) > room else [line])]
        elif indented:
            lines += [part for line in written for part in _example(line, room)]
        else:
            lines += ["\b" for line in written if line == "\b"]
            lines += textwrap.wrap(" ".join(line for line in written if line != "\b"), room, break_on_hyphens=False)
    return "\n".join(lines)


def _example(line: str, room: int) -> list[str]:
    """A command, and below it its comment, which stands two spaces or more behind it."""
    indent = len(line) - len(line.lstrip())
    command, _, comment = line.strip().partition("  ")
    deeper = " " * (indent + 4)
    if line.lstrip()[0].isdecimal():  # an item of a numbered list, or an exit code
        below = line.index(comment.strip()) if comment else len(deeper)
        return textwrap.wrap(line, room, subsequent_indent=" " * below)
    below = textwrap.wrap(comment.strip(), room, initial_indent=deeper, subsequent_indent=deeper)
    return [" " * indent + command, *below]


def first_sentence(command: click.Command) -> str:
    """The first sentence of a command's help, on one line."""
    if command.short_help:
        return command.short_help
    paragraph = " ".join((command.help or "").strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0]
