"""Threads of a process that has no memory or no thread left for a moment: what was refused is started later."""

import errno
from collections.abc import Callable, Mapping
from threading import Thread
from time import monotonic

from patra.kernel.errors import Transient


def start_thread(known: Thread | None, work: Callable[[], object], name: str) -> Thread:
    """The thread that does some work: the known one while it lives, else a new one.

    Raises Transient when the machine gives no further thread now; the caller keeps what it had and asks again at the
    next use.
    """
    if known is not None and known.is_alive():
        return known
    thread = Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise no_thread(error) from error
    return thread


class Threads:
    """The threads of some duties, begun at the first use."""

    def __init__(self, duties: Mapping[str, Callable[[], object]]) -> None:
        self._duties = duties
        self._threads: dict[str, Thread] = {}

    @property
    def has_begun(self) -> bool:
        return bool(self._threads)

    def begin(self) -> None:
        """Start those that were not, in their order. Raises Transient when not even the first can be."""
        if len(self._threads) == len(self._duties):
            return
        for name in [name for name in self._duties if name not in self._threads]:
            try:
                self._threads[name] = start_thread(None, self._duties[name], name)
            except Transient:
                if not self._threads:
                    raise
                return

    def join(self, until: float) -> None:
        """Wait for them all, until an instant of the monotonic clock."""
        for thread in self._threads.values():
            thread.join(max(until - monotonic(), 0))


def no_thread(error: Exception) -> Transient:
    words = f"the machine gives this process no further thread, memory or open file: {error}"
    return Transient("process_exhausted", words)


def is_exhausted(error: BaseException) -> bool:
    """Whether an error says that memory, threads or open files are short: it passes, and is nobody's fault."""
    match error:
        case MemoryError():
            return True
        case OSError():
            return error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
        case RuntimeError():
            return "start new thread" in str(error)
        case _:
            return False
