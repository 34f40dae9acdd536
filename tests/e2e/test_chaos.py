"""The short form of `./dev prove chaos`: a pause, a loss of descriptors and a kill under load, on SQLite."""

from pathlib import Path

from tests.prove.chaos import kill_web, no_descriptors, pause, prove


def test_what_was_acknowledged_survives_a_pause_lost_descriptors_and_a_kill(tmp_path: Path):
    faults = (pause, no_descriptors, kill_web)
    prove(tmp_path, faults, postgres=False, services_too=False, small=True, lasts=0.5, say=False)
