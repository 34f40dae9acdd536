"""The short form of `./dev prove attribution_kills`: two kills, and the store itself as the archive."""

from tests.prove.attribution_kills import prove


def test_what_was_acknowledged_survives_kills_once_and_deadlines_are_kept(tmp_path):
    prove(f"sqlite:///{tmp_path / 'kills.db'}", tmp_path, kills=2, clients=2, pause=0.6, seeds=4, outside=False)
