"""The line of tasks that wait for a permit."""

import msgspec


class Waiter(msgspec.Struct, frozen=True, array_like=True):
    task: str
    cost: int
    until: int


def cost_ahead(queue: tuple[Waiter, ...], task: str) -> int:
    ahead = 0
    for waiter in queue:
        if waiter.task == task:
            break
        ahead += waiter.cost
    return ahead


def without_task(queue: tuple[Waiter, ...], task: str) -> tuple[Waiter, ...]:
    return tuple(waiter for waiter in queue if waiter.task != task)


def placed_in_line(queue: tuple[Waiter, ...], waiter: Waiter) -> tuple[Waiter, ...]:
    if any(other.task == waiter.task for other in queue):
        return tuple(waiter if other.task == waiter.task else other for other in queue)
    return (*queue, waiter)
