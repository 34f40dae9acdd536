"""The command line: runs a command and gives its exit code; a command's module is imported when it is run."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from io import StringIO
from typing import Any

import click

import patra
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import escaped_echo
from patra.kernel.safety.untrusted_text import without_controls

# name: (module and attribute, one line for --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("patra.cli.serving.up:command", "Serve the API and run every background loop, in one process."),
    "web": ("patra.cli.serving.web:command", "Serve the API alone."),
    "work": ("patra.cli.serving.work:command", "Run background loops alone, all or those named."),
    "demo": ("patra.cli.demo:command", "Start everything on a temporary store and print where to look."),
    "doctor": ("patra.cli.installation.doctor:command", "Check this installation and say what to do."),
    "alerts": ("patra.cli.ingest.alerts:all_alerts", "Show the alerts of all engines that fire."),
    "migrate": ("patra.cli.installation.migrate:command", "Bring the tables of the store up to date."),
    "backup": ("patra.cli.installation.backup:backup", "Copy the store while it is in use, with a checksum."),
    "restore": ("patra.cli.installation.backup:restore", "Replace the store with a backup."),
    "verify": ("patra.cli.installation.backup:verify", "Check the store or a backup for damage."),
    "config": ("patra.cli.installation.config:group", "Show the settings and where each came from."),
    "token": ("patra.cli.installation.token:group", "Make bearer tokens for the API."),
    "audit": ("patra.cli.installation.audit:command", "Show what operators did."),
    "story": ("patra.cli.story:command", "Show what happened to a key of any kind, across all engines."),
    "completion": ("patra.cli.completion:command", "Print the completion script of a shell."),
    "outbox": ("patra.cli.installation.outbox:group", "Show messages that could not be delivered, and try them again."),
}
ENGINES: dict[str, tuple[str, str]] = {
    "attribution": ("patra.cli.attribution.group:group", "Turn ad events into billable facts, each counted once."),
    "ingest": ("patra.cli.ingest.group:group", "Harvest literature from providers."),
    "bus": ("patra.cli.bus:group", "Envelopes, contracts, dead letters, replay."),
    "studio": ("patra.cli.studio:group", "From a chapter of text to a film."),
}
EXIT_CODES = """\b
Exit codes:
  0    done
  1    done, and the answer is no (doctor found something broken, a check failed)
  2    the command line is wrong
  3    the configuration is wrong
  4    not now: the store is unavailable or busy; the same call may succeed later
  5    refused: the same call will be refused again
  70   a bug in Patra (set PATRA_DEBUG=1 for the traceback)
  130  interrupted"""


class Commands(Group):
    """A group that knows its commands' names and one-line helps without importing them."""

    def commands_there(self) -> dict[str, tuple[str, str]]:
        engines = {name: entry for name, entry in ENGINES.items() if find_spec(entry[0].partition(":")[0])}
        return COMMANDS | engines

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands_there())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = self.commands_there().get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module

        module, _, attribute = entry[0].partition(":")
        return getattr(import_module(module), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        there = self.commands_there()
        for title, names in (("Commands", COMMANDS), ("Engines", ENGINES)):
            rows = [(name, there[name][1]) for name in names if name in there]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\nExamples:\n"
    "  patra demo                       look at it, nothing to configure\n"
    "  patra up                         run it on ./patra.db and 127.0.0.1:8642\n"
    "  patra doctor                     what works, what does not, what to do\n"
    "  patra config show                the settings, and where each came from\n\n" + EXIT_CODES,
)
@click.option("--config", metavar="FILE", help="Settings file instead of ./patra.toml (or set PATRA_CONFIG).")
@click.version_option(patra.__version__, prog_name="patra")
@click.pass_context
def cli(ctx: click.Context, config: str | None) -> None:
    """Patra: at-least-once input becomes exactly-once facts, and every decision can be explained and replayed."""
    ctx.obj = {"config": config}


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Run one command line; the only place where errors become a line on standard error and an exit code."""
    with escaped_echo():
        return _run(args)


def _run(args: Sequence[str]) -> int:
    try:
        color = False if os.environ.get("NO_COLOR") else None  # https://no-color.org; None asks the terminal
        code: Any = cli.main(list(args), prog_name="patra", standalone_mode=False, color=color)
    except click.ClickException as error:
        from patra.cli.terminal.suggestions import explain_error

        shown = StringIO()
        explain_error(error).show(shown)
        click.echo(shown.getvalue(), nl=False, err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # `patra audit | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001  the edge of the process
        return _report_failure(error)
    return code if isinstance(code, int) else 0


def _report_failure(error: Exception) -> int:
    from patra.kernel.errors import ConfigInvalid, MigrationMismatch, PatraError, Transient

    if os.environ.get("PATRA_DEBUG"):
        import traceback

        traceback.print_exception(error)
    match error:
        case PatraError():
            text = " ".join(str(error).split())  # drivers and parsers write paragraphs
            click.echo(f"patra: {without_controls(text)}", err=True)
        case OSError() if _of_a_file(error):
            place = [str(error.filename)] if error.filename else []
            click.echo(": ".join(["patra", *place, "file_unusable", str(error.strerror)]), err=True)
        case _:
            click.echo(
                f"patra: internal_error: {type(error).__name__}: {error} (a bug; PATRA_DEBUG=1 shows where)", err=True
            )
    match error:
        case ConfigInvalid() | MigrationMismatch():
            return 3
        case Transient():
            return 4
        case PatraError():
            return 5
        case OSError() if _of_a_file(error):
            return 5
        case _:
            return 70


def _of_a_file(error: OSError) -> bool:
    """A file that cannot be read or written, a full disk: nothing that is wrong with Patra."""
    import errno

    return error.filename is not None or error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}


if __name__ == "__main__":
    main()
