"""How many groups of slices go into one transaction, and how many the inventory has room for."""

from patra.ingest.planning.slicer import _batch, _fitting, _ids
from patra.ingest.planning.slicing.slice_groups import Group
from patra.ingest.planning.slicing.slice_spec import Slicer
from patra.ingest.planning.slicing.windows import IdList
from patra.ingest.vocabulary.codes import Operation
from tests.unit.ingest.execution.scopes import WINDOW, spec_of

PART = Slicer(spec_of(), "trigger").of_window(WINDOW, 10.0)


def groups(*sizes: int) -> list[Group]:
    return [Group(slices=[PART] * size, progress=str(n), estimated=None) for n, size in enumerate(sizes)]


def test_a_transaction_takes_whole_groups_until_it_has_enough_slices():
    rest = iter(groups(2, 2, 2, 1))
    assert [group.progress for group in _batch(rest, 3)] == ["0", "1"]
    assert [group.progress for group in _batch(rest, 3)] == ["2", "3"]
    assert _batch(rest, 3) == []


def test_the_last_group_may_overfill_the_inventory_and_none_is_cut_in_two():
    found = groups(2, 2, 2)
    assert [_fitting(found, room) for room in (0, 1, 2, 3, 99)] == [[], found[:1], found[:1], found[:2], found]


def test_the_ids_of_a_slice_are_read_back_from_it():
    spec = spec_of("twophase", Operation.UPDATE)
    part = Slicer(spec, "trigger").of_ids(IdList(ids=("7", "8"), bucket=None))
    assert _ids(part) == ["7", "8"]
