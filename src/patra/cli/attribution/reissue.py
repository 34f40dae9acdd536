"""`patra attribution reissue`: issue records again that the archive did not take."""

import click

from patra.cli.terminal.options import config_option, json_option, open_patra, show

EPILOG = """\b
Examples:
  patra attribution reissue 'ref-1|ra-1'
  patra attribution reissue 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 --json"""


@click.command("reissue", epilog=EPILOG)
@click.argument("key")
@config_option
@json_option
def reissue(key: str, config: str | None, as_json: bool) -> None:
    """Issue records again that carry KEY and that the archive gave up or found in conflict.

    KEY is a recordKey, which means that record alone, or any other key that `find` takes. Each new record has .r2, .r3
    and so on appended to its archiveContractVersion and names the old one, which stays conflicted. Settlement counts a
    billable fact once the archive has it, and once in all.
    """
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.attribution.delivery.reissue import ReissuedRecord
    from patra.attribution.delivery.reissue import reissue as issue_again
    from patra.kernel.db import Tx

    with open_patra(config) as patra:
        now, in_store = patra.clock.now(), patra.settings.attribution.archive == "store"

        def both(tx: Tx) -> list[ReissuedRecord]:
            made = issue_again(tx, key, now, archived=in_store)
            audit(tx, command_line_actor(), "attribution.record.reissue", key, {"records": len(made)}, now)
            return made

        show(patra.db.run(both), as_json=as_json)
