"""The watcher of a hub outlives what its source throws."""

from threading import Event

from patra.bus.transports.notifier import Hub


class FailingOnce:
    """A source that fails at first, and then says that something was committed."""

    def __init__(self) -> None:
        self.calls = 0
        self.released = Event()

    def wait(self, seconds: float) -> bool:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("nobody foresaw this")
        self.released.wait(seconds)
        return True

    def poke(self) -> None:
        self.released.set()

    def close(self) -> None:
        pass


def test_a_watcher_goes_on_after_an_error_that_nobody_foresaw() -> None:
    source = FailingOnce()
    hub = Hub(source)
    try:
        assert hub.waker("types").wait(20)
        assert source.calls > 1
    finally:
        hub.close()
