"""What every reason code means: the one line of the engines' `reasons.py`, found by the code."""

from functools import cache

from patra.attribution.contract.reasons import Reason as AttributionReason
from patra.bus.catalogue.reasons import Reason as BusReason
from patra.ingest.vocabulary.reasons import Reason as PlanReason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.reason import ReasonCode
from patra.studio.vocabulary.reasons import Reason as StudioReason

ENGINES: tuple[tuple[str, tuple[type[ReasonCode], ...]], ...] = (
    ("Attribution", (AttributionReason,)),
    ("Ingest", (PlanReason, RunReason)),
    ("Bus", (BusReason,)),
    ("Studio", (StudioReason,)),
)


@cache
def _texts() -> dict[str, str]:
    return {reason.value: reason.text for _, kinds in ENGINES for kind in kinds for reason in kind}


def reason_text(code: str) -> str:
    """When a code is given; empty for one that is not a reason of an engine."""
    return _texts().get(code, "")


def reasons_by_engine() -> list[tuple[str, list[tuple[str, str]]]]:
    """Every code with its meaning, for the page of reasons."""
    return [
        (engine, sorted((reason.value, reason.text) for kind in kinds for reason in kind)) for engine, kinds in ENGINES
    ]
