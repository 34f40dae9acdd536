"""One thing whose cost is measured on stores of several sizes, and whether that cost grows."""

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

NOISE_FACTOR = 2.0
"""How much more than a logarithm a cost may grow before it counts: rounds on a shared machine differ as much."""


def _nothing() -> None:
    pass


class Spot(NamedTuple):
    """`work` is timed and gives how many units it did; `prepare` goes before each round and is not timed."""

    name: str
    unit: str
    work: Callable[[], int]
    prepare: Callable[[], None] = _nothing


def cost_of(spot: Spot, rounds: int) -> float | None:
    """µs of one unit, the lowest of some rounds; None if no round had anything to do."""
    costs: list[float] = []
    for _ in range(rounds):
        spot.prepare()
        begun = time.perf_counter()
        units = spot.work()
        taken = time.perf_counter() - begun
        if units:
            costs.append(taken / units * 1e6)
    return min(costs, default=None)


def growth_of(costs: Mapping[int, float]) -> float | None:
    """The cost at the largest size beside that at the one before it; None unless two sizes above zero have one."""
    sizes = sorted(size for size in costs if size)
    return costs[sizes[-1]] / costs[sizes[-2]] if len(sizes) > 1 else None


def is_flat(costs: Mapping[int, float]) -> bool | None:
    """Whether a cost grew no more than the logarithm of the rows did, with room for noise; None if that is not known."""
    ratio = growth_of(costs)
    if ratio is None:
        return None
    small, large = sorted(size for size in costs if size)[-2:]
    return ratio <= NOISE_FACTOR * math.log(large + 1) / math.log(small + 1)
