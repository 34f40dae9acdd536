"""`patra attribution archive`: what is on its way to an archive outside the store, and when the first of it is lost."""

import click

from patra.cli.terminal.options import config_option, json_option, open_patra, show


@click.command()
@config_option
@json_option
def archive(config: str | None, as_json: bool) -> None:
    """Decisions on their way to the archive: how many, since when delivery fails, and when the first is given up."""
    from patra.attribution.queries import archive_delivery

    with open_patra(config) as patra:
        where = patra.settings.attribution.archive
        found = patra.db.read(lambda tx: archive_delivery(tx, where))
    if as_json:
        show(found, as_json=True)
        return
    states = {state.replace("_", " "): count for state, count in sorted(found.states.items())}
    times = {"failing since": found.failing_since, "first is lost at": found.lost_at} if found.lost_at else {}
    show({"where": found.where, **(states or {"pending": 0}), **times}, as_json=False)
    if found.waiting:
        show(found.waiting, as_json=False)
