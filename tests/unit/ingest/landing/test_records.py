"""What a record is found by besides its own id."""

from patra.ingest.landing.records import MAX_KEY_BYTES, Draft, all_incoming, incoming, newest
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


def test_a_key_of_ours_in_one_record_leaves_the_identifiers_of_the_others():
    know_secret("sesame-4712-open")
    fields = [{"doi": "10.5555/sesame-4712-open", "pmid": "12"}, {"doi": "10.5555/b"}, {}]
    made = all_incoming([Draft("https://pubmed/12", 0, None, one, None, False) for one in fields])
    assert [one.identifiers for one in made if one is not None] == [("12",), ("10.5555/b",), ()]


def test_records_that_stand_once_come_in_the_order_of_their_ids_and_none_is_left_out():
    made = [one for one in (incoming(name, 0, None, {}, None, deleted=False) for name in "bca") if one is not None]
    kept, left_out = newest(made)
    assert ([one.id for one in kept], left_out) == (["a", "b", "c"], 0)


def test_of_a_record_that_stands_twice_the_later_version_is_kept():
    made = [one for one in (incoming("a", at, None, {}, None, deleted=False) for at in (1, 3, 2)) if one is not None]
    kept, left_out = newest([*made, *made[:1]])
    assert ([one.updated_at for one in kept], left_out) == ([3], 3)
