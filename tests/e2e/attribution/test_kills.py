"""The short form of `./dev prove attribution_kills`: two kills, the same promises."""

from tests.prove.attribution_kills import prove


def test_what_was_acknowledged_survives_kills_and_reaches_the_archive_in_order(tmp_path):
    prove(f"sqlite:///{tmp_path / 'kills.db'}", tmp_path, kills=2, clients=2, pause=0.6, seeds=4, most=12)
