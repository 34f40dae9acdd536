"""`patra ingest pack new`: a pack begun from a sample answer, from a file or from one request."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.options import json_wanted, outcome_option, show
from patra.cli.terminal.suggestions import nearest

if TYPE_CHECKING:
    from patra.ingest.packs.scaffold import Sample

EPILOG = """\b
Examples:
  curl -o sample.json 'https://api.example.org/works?from=2026-11-01&to=2026-11-02&rows=20'
  patra ingest pack new mylibrary --sample sample.json -o mylibrary.yaml \\
      --url 'https://api.example.org/works?from=2026-11-01&to=2026-11-02&rows=20'
  patra ingest pack new mylibrary --url 'https://api.example.org/works?rows=20' -o mylibrary.yaml
A URL with dates in it shows how the provider filters by time. With --sample nothing is sent."""


@click.command("new", epilog=EPILOG)
@click.argument("name")
@click.option(
    "--sample",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the body of an answer: JSON, or XML such as Atom or OAI-PMH.",
)
@click.option("--url", help="What was asked for the sample; without --sample it is asked now, once.")
@click.option("--items", "items_path", metavar="PATH", help="Where the records are, if the guess is wrong.")
@click.option("--endpoint", default="records", show_default=True, help="Name of the endpoint.")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; it must not be there yet."
)
@outcome_option
def new(
    name: str, sample: Path | None, url: str | None, items_path: str | None, endpoint: str, out: Path | None
) -> None:
    """Start a pack from a sample answer: records, id, update time, pages and fields are guessed, the rest is TODO.

    The pack passes `pack check` as it is. Read it, decide what is marked TODO, then `patra ingest try` it.
    """
    import re

    from patra.ingest.packs.scaffold import Sample, start_pack

    if sample is None and url is None:
        raise click.UsageError("give --sample FILE, or --url URL to ask once")
    for what, given in (("NAME", name), ("--endpoint", endpoint)):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", given):
            raise click.UsageError(f"{what} begins with a letter and has letters, digits and _ only: {given!r}")
    if out is not None and out.exists():
        raise click.UsageError(f"{out} is there already; choose another name or move it away")
    taken = Sample(body=sample.read_bytes(), url=url) if sample is not None else _ask_sample(url or "")
    made = start_pack(name, endpoint, taken, items_path)
    _check(made.text, name)
    if out is not None:
        out.write_text(made.text, encoding="utf-8")
    if json_wanted():
        show(
            {"file": None if out is None else str(out), "records": made.records, "fields": made.fields,
             "todo": made.todo, "pack": made.text if out is None else None},
            as_json=True,
        )  # fmt: skip
        return
    if out is None:
        click.echo(made.text, nl=False)
    said = ", ".join(made.fields) or "none"
    click.echo(f"{made.records} records read; fields of a work: {said}; {made.todo} TODO", err=True)
    if out is not None:
        click.echo(
            f"next: read {out}, then `patra ingest pack check {out}`, `patra ingest try {out} {endpoint}`", err=True
        )


def _check(text: str, name: str) -> None:
    """What is made here must load: if it does not, that is a fault of ours, and it is said."""
    from patra.ingest.packs.bundled import parse_pack
    from patra.ingest.packs.compiler import check_pack
    from patra.ingest.packs.problems import errors

    wrong = errors(check_pack(parse_pack(text, f"{name}.yaml")))
    if wrong:
        raise click.ClickException(
            "the draft does not pass the checks; please report it:\n" + "\n".join(map(str, wrong))
        )


def _ask_sample(url: str) -> "Sample":
    """One request, as polite as any other."""
    from urllib.parse import urlsplit

    from patra.ingest.http.client import Failure, Outgoing, Transport
    from patra.ingest.packs.scaffold import Sample
    from patra.ingest.ratelimit.limiter import Permit
    from patra.kernel.clock import SystemClock
    from patra.kernel.errors import Invalid
    from patra.kernel.ids import new_id
    from patra.kernel.safety.networks import networks_of

    request = Outgoing(
        method="GET",
        url=url,
        headers=(("User-Agent", "patra"), ("Accept", "application/json, application/xml;q=0.9, */*;q=0.8")),
        hosts=(urlsplit(url).netloc,),
        allow_http=True,
    )
    now = SystemClock().now()
    permit = Permit(key="sample", id=new_id(), cost=1, at=now, waited=0, asked=1, why=None, view={})
    transport = Transport(networks=networks_of(["0.0.0.0/0", "::/0"]))  # the URL is the word of the person who runs it
    try:
        answer = transport.send(request, permit)
    finally:
        transport.close()
    if isinstance(answer, Failure):
        raise Invalid("sample_unreachable", f"{request.shown_url}: {answer.fault}: {answer.detail}")
    if answer.status != 200:
        begins = answer.body[:200].decode("utf-8", "replace")
        raise Invalid("sample_refused", f"{request.shown_url} answered {answer.status}: {begins}")
    return Sample(body=answer.body, url=url, headers=answer.headers)


def unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Why a pack cannot be read, and where it is not there what was meant: its ending, a near one, a bundled pack."""
    why = f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    if not isinstance(error, FileNotFoundError):
        return why
    from patra.ingest.packs import bundled

    there = [one.name for one in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
    if near := [name for name in there if name.rpartition(".")[0] == path.name] or nearest(path.name, there):
        return f"{why} (did you mean {path.with_name(near[0])}?)"
    name = path.name.removesuffix(".yaml")
    return f"{why} (`patra ingest packs {name} > {name}.yaml` writes it)" if name in bundled.names() else why
