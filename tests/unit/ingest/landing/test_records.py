"""What a record is found by besides its own id."""

from patra.ingest.landing.records import MAX_KEY_BYTES, incoming
from patra.kernel.safety.known_secrets import know_secret


def identifiers(own: str, **fields: str) -> tuple[str, ...]:
    made = incoming(own, 0, None, fields, None, deleted=False)
    assert made is not None
    return made.identifiers


def test_a_record_is_found_by_its_doi_and_by_its_id_without_the_address():
    own = "https://openalex.org/W1"
    assert identifiers(own, doi="https://doi.org/10.5555/A", openalex="W1") == ("10.5555/a", "W1")


def test_an_identifier_that_no_index_holds_beside_the_id_is_left_out():
    long = "10.5555/" + "水" * ((MAX_KEY_BYTES - 8) // 6)
    assert identifiers("1", doi=long) == (long,)
    assert identifiers(f"https://doi.org/{long}", doi=long) == ()


def test_a_doi_that_repeats_a_key_of_ours_is_not_kept():
    know_secret("sesame-4711-open")
    assert identifiers("1", doi="10.5555/sesame-4711-open") == ()
