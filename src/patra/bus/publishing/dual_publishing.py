"""Dual publishing during a rollout: a function turns payloads of one major into another, and both go out (C§4, B8)."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.publishing.envelope import Envelope, rendition
from patra.kernel.telemetry import get_logger

log = get_logger()

Translate: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Translations:
    """Functions by type, major that is given and major that is made."""

    def __init__(self) -> None:
        self._functions: dict[str, dict[tuple[int, int], Translate]] = {}

    def add(self, event_type: str, given: int, made: int, translate: Translate) -> None:
        self._functions.setdefault(event_type, {})[given, made] = translate

    def complete_versions(self, catalogue: Catalogue, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
        """The envelopes, and behind them renditions in live majors that they lack and a function can make."""
        if not self._functions:
            return envelopes
        present = {(_key(one), one.event_version.partition(".")[0]) for one in envelopes}
        added: list[Envelope] = []
        for one in envelopes:
            kind = catalogue.types.get(one.event_type)
            for (given, made), translate in self._functions.get(one.event_type, {}).items():
                is_given = one.event_version.partition(".")[0] == str(given)
                if kind is None or not {given, made} <= set(kind.live) or not is_given:
                    continue  # of what is refused itself no other version is published
                if (_key(one), str(made)) in present or (payload := _translate_payload(translate, one)) is None:
                    continue
                present.add((_key(one), str(made)))
                added.append(rendition(one, str(kind.contracts[made].version), payload))
        return [*envelopes, *added] if added else envelopes


def _translate_payload(translate: Translate, one: Envelope) -> dict[str, Any] | None:
    """The payload in the other version; None where the function fails: the event is then judged as it was given."""
    try:
        return translate(one.payload)
    except Exception as error:  # noqa: BLE001  whatever a function of the publisher raises
        log.warning(
            "bus_translation_failed", event_type=one.event_type, event_id=one.event_id, error=type(error).__name__
        )
        return None


def _key(one: Envelope) -> tuple[str, str, str]:
    return one.tenant_id, one.event_type, one.idempotency_key
