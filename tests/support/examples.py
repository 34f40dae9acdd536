"""How many examples a property is tried with: few in `./dev test`, many times as many in `./dev prove properties`."""

import os

SCALE = int(os.environ.get("PATRA_TEST_SCALE", "1"))


def examples(count: int) -> int:
    return count * SCALE
