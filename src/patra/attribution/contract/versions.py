"""The version anchors that every output record carries, and all sets of them that were ever written (§3.8.28, F22)."""

import msgspec


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The version anchors of an output record (F22)."""

    eventContractVersion: str = "f_event_v1"  # noqa: N815  names of the specification
    mappingRuleVersion: str = "f_map_v1"  # noqa: N815
    dedupFingerprintVersion: str = "f_dedup_v1"  # noqa: N815
    closureRuleVersion: str = "f_closure_v1"  # noqa: N815
    billingRuleVersion: str = "f_billing_v1"  # noqa: N815
    archiveContractVersion: str = "f_archive_v1"  # noqa: N815


VERSIONS: tuple[Versions, ...] = (Versions(),)
"""Every set of anchors that records were ever written under; a record keeps the number of its own (§3.8.28)."""

CURRENT = 0
FACT_VERSION = 1
