"""Prices: integer micro-units of a currency for one fact, by app, placement, creative and type, valid from and to.

Of the rates that match a fact, the one that names the most decides: a creative before a placement, both before an app
alone, an app before none; then the one with the highest version. Rates are only ever added: a new version that is valid
from an instant on replaces an older one, and what was settled keeps the version that it was settled with.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Invalid
from patra.kernel.safety.known_secrets import MASK
from patra.kernel.safety.redact import masked_label

BILLABLE_TYPES = (BILLABLE_IMPRESSION, BILLABLE_CLICK)
MAX_PRICE_MICROS = 10**15
_currency = re.compile(r"[A-Z]{3}").fullmatch


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One price. An empty app, placement or creative stands for any."""

    billable_type: str
    price_micros: int
    currency: str
    app_id: str = ""
    placement: str = ""
    creative: str = ""
    valid_from: int
    valid_to: int | None = None
    """The first instant at which it is not valid any more."""
    version: int = 0


def check_rate(rate: Rate) -> None:
    """Refuse a rate that cannot be meant."""
    if rate.billable_type not in BILLABLE_TYPES:
        raise Invalid("rate_invalid", f"the type is one of {', '.join(BILLABLE_TYPES)}", place="type")
    if not 0 <= rate.price_micros <= MAX_PRICE_MICROS:
        raise Invalid("rate_invalid", f"a price is 0 to {MAX_PRICE_MICROS} micro-units", place="price")
    if _currency(rate.currency) is None:
        raise Invalid("rate_invalid", "a currency is three capital letters, as EUR", place="currency")
    if rate.valid_to is not None and rate.valid_to <= rate.valid_from:
        raise Invalid("rate_invalid", "a rate ends after it begins", place="to")


def rate_for(
    rates: Sequence[Rate], *, app_id: str, placement: str, creative: str, billable_type: str, at: int
) -> Rate | None:
    """The rate of a fact; None where none is valid for it."""
    matching = [
        rate
        for rate in rates
        if rate.billable_type == billable_type
        and rate.app_id in {"", app_id}
        and rate.placement in {"", placement}
        and (rate.creative in {"", creative} or _is_mask_of(creative, rate.creative))
        and rate.valid_from <= at
        and (rate.valid_to is None or at < rate.valid_to)
    ]
    return max(matching, key=_precedence, default=None)


def _is_mask_of(creative: str, name: str) -> bool:
    """Whether a creative is known by its mask alone, as statements have names with an address in them."""
    return creative.startswith(MASK) and masked_label(name) == creative


def _precedence(rate: Rate) -> tuple[bool, bool, bool, int]:
    return bool(rate.creative), bool(rate.placement), bool(rate.app_id), rate.version


class _ListedRate(msgspec.Struct, frozen=True, kw_only=True, rename={"valid_from": "from", "valid_to": "to"}):
    """A rate as `patra attribution rate list --json` prints it."""

    version: int
    type: str
    priceMicros: int  # noqa: N815  names as they are printed
    currency: str
    app: str = ""
    placement: str = ""
    creative: str = ""
    valid_from: str
    valid_to: str | None = None


def read_rates(path: Path) -> list[Rate]:
    """The rates of a file; raises `Invalid` that names what is wrong with it."""
    try:
        listed = msgspec.json.decode(path.read_bytes(), type=list[_ListedRate])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        advice = "write it with `patra attribution rate list --json`"
        raise Invalid("rates_invalid", str(error), place=str(path), advice=advice) from None
    return [_read_rate(one, f"{path}: version {one.version}") for one in listed]


def _read_rate(one: _ListedRate, place: str) -> Rate:
    begin, end = parse_instant(one.valid_from), parse_instant(one.valid_to) if one.valid_to else None
    if begin is None or (one.valid_to and end is None):
        raise Invalid("rates_invalid", "from and to are RFC 3339 instants with an offset", place=place)
    rate = Rate(
        billable_type=one.type,
        price_micros=one.priceMicros,
        currency=one.currency,
        app_id=one.app,
        placement=one.placement,
        creative=one.creative,
        valid_from=begin,
        valid_to=end,
        version=one.version,
    )
    check_rate(rate)
    return rate
