"""Every state of every machine has a tone: a new state is a decision about what it asks of people."""

from patra.app import wiring
from patra.kernel.machine import Machine, declared_machines
from patra.web.console.markup.tones import TONES, tone_of

NAMES = {
    "attribution_closure": "closure",
    "attribution_dedup": "dedup",
    "attribution_record": "record",
    "bus_dead_letter": "dead_letter",
    "bus_delivery": "delivery",
    "ing_alert": "alert",
    "ing_circuit": "circuit",
    "ing_plan": "plan",
    "ing_plan_slice": "slice",
    "ing_task": "task",
    "ing_task_run": "run",
    "ing_task_run_batch": "batch",
    "outbox": "outbox",
    "studio_film": "film",
    "studio_job": "job",
    "studio_run": "film_run",
    "studio_work": "work",
}


def machines() -> list[Machine]:
    assert wiring.COMPONENTS
    import patra.attribution.writer
    import patra.bus.bus
    import patra.ingest.operations.alerting.monitor
    import patra.studio.vocabulary.stages  # noqa: F401

    return [one for one in declared_machines() if type(one.initial).__module__.startswith("patra.")]


def test_every_state_of_every_machine_has_a_tone():
    found = {machine.name: {str(state) for state in machine.states} for machine in machines()}
    assert found.keys() == NAMES.keys()
    without = {(name, state) for name, states in found.items() for state in states - TONES[NAMES[name]].keys()}
    assert without == set()


def test_a_state_keeps_its_name_unless_it_would_mislead():
    assert tone_of("plan", "READY").word == "sliced"
    assert tone_of("closure", "closed_failure")[:2] == ("off", "off")
    assert tone_of("film_run", "composing").tone == "run"
    assert tone_of("nothing", "unheard_of").word == "unheard_of"
