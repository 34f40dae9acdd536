"""The short form of the proofs `kernel_leases` and `kernel_outbox`: processes killed with -9, for seconds."""

from tests.prove import kernel_leases, kernel_outbox


def test_leases_survive_the_killing_of_their_workers(database_url: str):
    workers = 1 if database_url.startswith("sqlite") else 2
    kernel_leases.prove(database_url, items=3000, workers=workers, every=0.05, life=3, at_least=2, most_kills=5)


def test_an_outbox_survives_the_killing_of_its_relays(database_url: str):
    relays = 1 if database_url.startswith("sqlite") else 2
    kernel_outbox.prove(
        database_url, messages=3000, groups=30, relays=relays, every=0.05, life=1, at_least=2, most_kills=6
    )
