"""The way of one event through its checks, for `patra attribution event --event`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.options import table

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from patra.attribution.queries import DecisionView


def print_steps(found: "Sequence[DecisionView]") -> None:
    """Of each decision: every step in its order, how it ended, and why."""
    for one in found:
        click.echo(f"\n{one.eventType} {one.answer} at {one.audit['decidedAt']}: {one.audit['decisionReasonCode']}")
        table(
            ["step", "outcome", "what"],
            [[step.name, step.outcome.replace("_", " "), step.text] for step in one.steps],
        )
