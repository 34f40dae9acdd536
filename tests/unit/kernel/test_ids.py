import re
import time
from uuid import UUID

from patra.kernel.ids import new_id


def test_an_id_is_a_uuid_of_version_7_in_lower_case() -> None:
    one = new_id()
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)
    assert UUID(one).version == 7


def test_ids_made_one_after_the_other_sort_in_that_order() -> None:
    ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_an_id_holds_the_millisecond_of_its_birth() -> None:
    before = time.time_ns() // 1_000_000
    born = UUID(new_id()).int >> 80
    assert before <= born <= time.time_ns() // 1_000_000 + 1
