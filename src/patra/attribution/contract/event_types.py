"""The dictionary of the eight input types: what each requires, its tier and window, what of it is hashed.

§3.8.5, §3.8.9, §3.8.12; the lengths of windows are in `windows` (§3.8.14). All that later stages ask of an event type
stands in one row of `KINDS`; `failure` is the processor's own (F1).
"""

import msgspec

from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW

MAX_FIELD_CHARS = 1024
NA = "NA"
UNKNOWN = "unknown"

COMMON = ("traceKey", "requestKey", "attemptKey", "opportunityKey")
"""The keys that every type requires as text, beside `eventId`, `eventType`, `eventAt` and `eventVersion`."""

_ENVELOPED = ("eventId", "eventType", "eventAt", "eventVersion", "idempotencyKey", "eventIdScope")


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One input type. `digest` names the fields of `semanticPayloadDigest` (§3.8.12), in their order."""

    name: str
    window: int
    fields: tuple[str, ...]
    digest: tuple[str, ...]
    attribution: str
    reference: bool = True
    opens: bool = False
    """Whether such an event opens its closure where that is not there yet; a postback is not a render signal (F13)."""
    rules: bool = False
    """Whether what becomes of such an event depends on its closure."""
    settled: bool = False
    """Whether settlement may ask for its opportunity."""
    says: str = ""
    """The field on which more hangs than its own value."""
    enum: str = ""
    values: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()

    def complete_checks(self) -> "Kind":
        return msgspec.structs.replace(
            self,
            required=(*COMMON, *(("responseReference",) if self.reference else ()), *self.fields),
            known=frozenset({*_ENVELOPED, *COMMON, "responseReference", "renderAttemptId", *self.fields})
            | ({"errorClass"} if self.name == "error" else set()),
        )


_CHANNELS = frozenset({"waterfall", "bidding", "hybrid", "direct", "house"})
_INTERACTIONS = frozenset(
    {"expand", "collapse", "dwell", "close", "scroll", "mute", "unmute", "video_start", "video_complete"}
)
_POSTBACKS = frozenset({"success", "failed", "pending"})
_STAGES = frozenset({"request", "auction", "fill", "render", "click", "postback"})

KINDS: dict[str, Kind] = {
    kind.name: kind.complete_checks()
    for kind in (
        Kind(
            name="opportunity_created",
            window=DIAGNOSTICS_WINDOW,
            fields=("placementKey",),
            digest=("placementKey",),
            attribution="attr_opportunity_created",
            reference=False,
            settled=True,
            says="placementKey",
        ),
        Kind(
            name="auction_started",
            window=DIAGNOSTICS_WINDOW,
            fields=("auctionChannel",),
            digest=("auctionChannel",),
            attribution="attr_auction_started",
            reference=False,
            enum="auctionChannel",
            values=_CHANNELS,
        ),
        Kind(
            name="ad_filled",
            window=DIAGNOSTICS_WINDOW,
            fields=("creativeId",),
            digest=("creativeId",),
            attribution="attr_ad_filled",
            opens=True,
        ),
        Kind(
            name="impression",
            window=BILLING_WINDOW,
            fields=("renderAttemptId", "creativeId"),
            digest=("creativeId", "renderAttemptId"),
            attribution="attr_impression",
            opens=True,
            rules=True,
            settled=True,
        ),
        Kind(
            name="click",
            window=BILLING_WINDOW,
            fields=("renderAttemptId", "clickTarget"),
            digest=("renderAttemptId", "clickTarget"),
            attribution="attr_click",
            opens=True,
            rules=True,
            settled=True,
        ),
        Kind(
            name="interaction",
            window=DIAGNOSTICS_WINDOW,
            fields=("renderAttemptId", "interactionType"),
            digest=("renderAttemptId", "interactionType"),
            attribution="attr_interaction",
            opens=True,
            enum="interactionType",
            values=_INTERACTIONS,
        ),
        Kind(
            name="postback",
            window=BILLING_WINDOW,
            fields=("postbackType", "postbackStatus"),
            digest=("postbackType", "postbackStatus"),
            attribution="attr_postback",
            rules=True,
            says="postbackStatus",
            enum="postbackStatus",
            values=_POSTBACKS,
        ),
        # `responseReference` is asked of an error that names a render attempt: `validate` decides that (F2.2)
        Kind(
            name="error",
            window=DIAGNOSTICS_WINDOW,
            fields=("errorStage", "errorCode"),
            digest=("errorStage", "errorCode"),
            attribution="attr_error",
            reference=False,
            opens=True,
            enum="errorStage",
            values=_STAGES,
        ),
    )
}


def tier(kind: Kind) -> str:
    """`billing` or `diagnostics` (§3.8.9): exactly one for each type."""
    return "billing" if kind.window == BILLING_WINDOW else "diagnostics"
