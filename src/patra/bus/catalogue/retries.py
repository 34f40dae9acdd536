"""How often and how late a failed event comes back, as a contract file says it (B5)."""

from collections.abc import Iterable, Mapping
from typing import NoReturn

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.kernel.clock import MINUTE, SECOND, parse_duration
from patra.kernel.errors import ConfigInvalid, Invalid
from patra.kernel.retry import Backoff


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how late a failed event comes back (B5: five times, exponential, with jitter)."""

    max_retries: int = 5
    base: int = SECOND
    factor: float = 2.0
    cap: int = 5 * MINUTE
    errors: Mapping[str, "Retry"] = {}  # other retries, by the error's code or the name of its type

    def of_error(self, kinds: Iterable[str]) -> "Retry":
        """The retries of the first of these codes and type names that has its own."""
        return next((self.errors[kind] for kind in kinds if kind in self.errors), self)

    @property
    def backoff(self) -> Backoff:
        return Backoff(base=self.base, factor=self.factor, cap=self.cap)


class RetryFile(msgspec.Struct, forbid_unknown_fields=True):
    max_retries: int = 5
    base: str = "PT1S"
    factor: float = 2.0
    cap: str = "PT5M"
    errors: dict[str, "ErrorRetryFile"] = {}


class ErrorRetryFile(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out is as in the retries of the type; `delay` is one wait, the same after each failure."""

    max_retries: int | None = None
    base: str | None = None
    factor: float | None = None
    cap: str | None = None
    delay: str | None = None


def retry_of(file: RetryFile, place: str) -> Retry:
    here = f"{place}: retry"
    plain = Retry(
        max_retries=file.max_retries,
        base=duration(file.base, f"{here}.base"),
        factor=file.factor,
        cap=duration(file.cap, f"{here}.cap"),
    )
    _check_retry(plain, here)
    errors: dict[str, Retry] = {}
    for kind, one in file.errors.items():
        at = f"{here}.errors.{kind}"
        if one.delay is not None and (one.base or one.factor or one.cap):
            refuse(at, "either `delay`, or `base`, `factor` and `cap`")
        base, factor, cap = one.base or file.base, one.factor or file.factor, one.cap or file.cap
        if one.delay is not None:
            base, factor, cap = one.delay, 1.0, one.delay
        errors[kind] = Retry(
            max_retries=file.max_retries if one.max_retries is None else one.max_retries,
            base=duration(base, at),
            factor=factor,
            cap=duration(cap, at),
        )
        _check_retry(errors[kind], at)
    return msgspec.structs.replace(plain, errors=errors)


def _check_retry(retry: Retry, place: str) -> None:
    if not 0 <= retry.max_retries <= 100:
        refuse(place, "max_retries is between 0 and 100")
    if not (0 < retry.base <= retry.cap and retry.factor >= 1):
        refuse(place, "0 < base <= cap, and factor is at least 1")


def duration(text: str, place: str) -> int:
    try:
        return parse_duration(text)
    except Invalid as error:
        refuse(place, error.detail)


def refuse(place: str, detail: str) -> NoReturn:
    raise ConfigInvalid(Reason.CATALOGUE_INVALID, detail, place=place, advice="see docs/reference/bus-catalogue.md")
