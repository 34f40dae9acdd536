"""Whatever a command does to the store, HTTP does as well, or a sentence here says why it cannot."""

import click

from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.kernel.clock import SystemClock
from patra.web.asgi import app
from patra.web.console.acts import ACTS
from tests.unit.cli.test_main_tree import RUNS

BY_HTTP = {
    "token new": "token.new",
    "token revoke": "token.revoke",
    "token rotate": "token.rotate",
    "outbox requeue": "outbox.requeue",
    "attribution app add": "attribution.app.add",
    "attribution app revoke": "attribution.app.revoke",
    "attribution app rotate": "attribution.app.rotate",
    "attribution period close": "attribution.period.close",
    "attribution rate add": "attribution.rate.add",
    "attribution reconcile": "attribution.period.reconcile",
    "attribution reissue": "attribution.record.reissue",
    "ingest acknowledge": "ingest.acknowledge",
    "ingest blackbox": "ingest.blackbox",
    "ingest cancel": "ingest.cancel_plan ingest.cancel_slice ingest.cancel_task",
    "ingest dismiss": "ingest.dismiss",
    "ingest end-silence": "ingest.end_silence",
    "ingest history restore": "ingest.history_restore",
    "ingest lift": "ingest.lift",
    "ingest pack diff": "ingest.pack_diff",
    "ingest pack load": "ingest.pack_load",
    "ingest pack promote": "ingest.pack_promote",
    "ingest pack rollback": "ingest.pack_rollback",
    "ingest pack stage": "ingest.pack_stage",
    "ingest pause": "ingest.pause",
    "ingest plan": "ingest.plan",
    "ingest replay": "ingest.replay",
    "ingest requeue": "ingest.requeue_task ingest.requeue_tasks ingest.requeue_failed",
    "ingest reread": "ingest.reread",
    "ingest resume": "ingest.resume",
    "ingest schedule add": "ingest.add_schedule",
    "ingest schedule change": "ingest.change_schedule",
    "ingest schedule disable": "ingest.disable_schedule",
    "ingest schedule enable": "ingest.enable_schedule",
    "ingest schedule remove": "ingest.remove_schedule",
    "ingest schedule run": "ingest.run_schedule",
    "ingest signal": "ingest.signal",
    "ingest silence": "ingest.silence",
    "bus discard": "bus.discard",
    "bus discard-all": "bus.bulk_act",
    "bus freeze": "bus.freeze",
    "bus groups pause": "bus.pause",
    "bus groups resume": "bus.resume",
    "bus publish": "bus.publish",
    "bus replay": "bus.replay",
    "bus replay-all": "bus.bulk_act",
    "bus stage": "bus.stage",
    "bus thaw": "bus.thaw",
    "bus webhooks add": "bus.webhook.add",
    "bus webhooks remove": "bus.webhook.remove",
    "bus webhooks rotate": "bus.webhook.rotate",
    "studio cancel": "studio.cancel",
    "studio edit": "studio.edit",
    "studio make": "studio.submit",
    "studio render": "studio.edit",
    "studio resume": "studio.resume",
}
"""Commands that act, each with the acts of the HTTP interface that do the same."""

ONLY_A_COMMAND = {
    "up": "it is the server",
    "web": "it is the server",
    "work": "it is the server",
    "demo": "it is a server of its own",
    "migrate": "a server whose tables are of another release does not start",
    "backup": "it writes a file of the machine that it runs on",
    "restore": "no server may run meanwhile",
    "attribution replay": "it fills a store that is empty, before any server uses it",
    "attribution history restore": "it brings files of a folder or of object storage back for minutes, in the foreground",
    "attribution send-sample": "it is a client of the HTTP interface",
    "ingest run": "it works in the foreground; a server's workers do what POST /ingest/plans planned",
    "ingest record": "it writes recordings into files for tests of a pack",
    "ingest secret allow": "an HTTP token that could load packs and allow secrets could send them anywhere",
    "ingest secret revoke": "the same person who allowed it, at the same place",
    "bus consume": "it runs a command of this machine for each event; HTTP has /bus/groups/{group}/pull",
    "bus catalogue release": "it writes a file of a repository",
    "bus groups forget": "it deletes what a group has still to handle; nobody should be able to do so remotely",
    "bus groups unsubscribe": "what a group reads is said by the program that handles it, when it starts",
    "studio sweep": "it deletes files of the folder of this machine",
}
"""Commands that act and have no counterpart, and why."""

ONLY_READS = {
    "doctor", "alerts", "verify", "config show", "token list", "audit", "story", "completion", "outbox",
    "attribution app list", "attribution archive", "attribution closure", "attribution closures", "attribution event", "attribution find",
    "attribution history ask", "attribution history check", "attribution history list",
    "attribution list", "attribution log export", "attribution rate list", "attribution reasons",
    "attribution refused", "attribution rejects", "attribution schema", "attribution settle",
    "attribution statement export", "attribution statement list", "attribution statement show",
    "attribution statement verify", "attribution turned-away", "attribution verify", "ingest alerts",
    "ingest batches", "ingest coverage", "ingest cursor-timeline", "ingest cursors", "ingest errors",
    "ingest history list", "ingest lineage", "ingest pack check", "ingest pack new", "ingest pack schema",
    "ingest pack show", "ingest pack trial", "ingest packs", "ingest plans", "ingest quarantine", "ingest queue",
    "ingest rate", "ingest records", "ingest refused", "ingest runs", "ingest schedule history",
    "ingest schedule list", "ingest schedules", "ingest secret list", "ingest show", "ingest signals",
    "ingest sources", "ingest spec show", "ingest tasks", "ingest top-errors", "ingest try", "ingest windows",
    "ingest works", "bus", "bus acts", "bus catalogue", "bus catalogue check", "bus catalogue docs",
    "bus dead-letters", "bus groups", "bus new", "bus tail", "bus timeline", "bus webhooks", "studio runs",
    "studio shots", "studio show", "studio storyboard", "ingest",
}  # fmt: skip
"""Commands that leave the store as it is."""

NOT_IN_THE_CONSOLE = {
    "attribution.rate.add": "prices are agreed on in writing and entered by a script with its file",
    "attribution.record.reissue": "needs the archive's operator, and a key for each record",
    "bus.ack": "a consumer's",
    "bus.extend": "a consumer's",
    "bus.nack": "a consumer's",
    "bus.publish": "a producer's",
    "bus.pull": "a consumer's",
    "bus.stage": "belongs to a release of the catalogue",
    "bus.webhook.rotate": "the receiver has to be changed at the same time",
    "ingest.history_restore": "reads object storage for minutes; its progress is a command's",
    "ingest.pack_diff": "a trial shows it",
    "ingest.pack_load": "a trial that is promoted does the same, compared first",
    "token.new": "a token's secret belongs into a terminal or a secret store, not into a browser",
    "token.revoke": "as token.new",
    "token.rotate": "as token.new",
}
"""Acts of the HTTP interface that no page offers, and why."""


def test_every_command_acts_over_http_too_or_says_why_it_cannot() -> None:
    runs = {name for name, command in RUNS.items() if not isinstance(command, click.Group) or name}
    kinds: list[set[str]] = [set(BY_HTTP), set(ONLY_A_COMMAND), ONLY_READS & runs]
    assert runs - set[str]().union(*kinds) == set(), "say whether it acts, and how HTTP does the same"
    assert (set(BY_HTTP) | set(ONLY_A_COMMAND)) - runs == set(), "there is no such command any more"
    assert sum(map(len, kinds)) == len(set[str]().union(*kinds)), "a command is of one kind"


def test_every_act_that_is_named_is_one_and_the_console_has_it_or_a_reason_why_not() -> None:
    patra = build(Settings(store=StoreSettings(url="sqlite:///:memory:")), SystemClock())
    try:
        endpoints = app(patra).endpoints
    finally:
        patra.close(0)
    acts = {endpoint.act for endpoint in endpoints if endpoint.writes and endpoint.role is not None}
    named = {act for line in BY_HTTP.values() for act in line.split()}
    assert named - acts == set()
    offered = {(act.method, act.template) for act in ACTS.values()}
    in_console = {endpoint.act for endpoint in endpoints if (endpoint.method, endpoint.template) in offered}
    assert acts - in_console == set(NOT_IN_THE_CONSOLE)
