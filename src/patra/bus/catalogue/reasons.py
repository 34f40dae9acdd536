"""Every code that the bus gives, with one line on when it is given (C§1 to C§6, B1 to B5)."""

from patra.kernel.reason import ReasonCode


class Reason(ReasonCode):
    # The envelope (C§1, B1)
    ENVELOPE_MALFORMED = "b_envelope_malformed", "the message is not JSON, or not an object"
    ENVELOPE_MISSING = "b_envelope_missing", "a required field of the envelope is absent, null or empty"
    ENVELOPE_INVALID = "b_envelope_invalid", "a field of the envelope has a form that B1 does not allow"
    ENVELOPE_UNKNOWN = "b_envelope_unknown_field", "the envelope has a field that B1 does not name"
    SCHEMA_VERSION = (
        "b_schema_version_unsupported",
        "the `schema_version` of the envelope is not one that this bus reads",
    )
    CLOUDEVENT_INVALID = "b_cloudevent_invalid", "the message is not a CloudEvent 1.0 that maps onto an envelope"

    # The contract (C§4, C§5, B3, B4)
    TYPE_UNKNOWN = "b_type_unknown", "the catalogue has no such event type"
    VERSION_UNKNOWN = "b_version_unknown", "the catalogue has no such version of the event type"
    VERSION_RETIRED = "b_version_retired", "this major version is no longer published"
    PRODUCER = (
        "b_producer_not_authoritative",
        "`producer` is not the one producer that the catalogue names for the type",
    )
    FORWARD_UNMARKED = (
        "b_forward_unmarked",
        "someone other than `producer` publishes, and `forwarded_by` does not end with them",
    )
    FORWARD_LOOP = "b_forward_loop", "a module stands in `forwarded_by` twice, or forwards what it produced itself"
    PUBLISHER = (
        "b_publisher_not_allowed",
        "the publisher is not bound to its tenant, or not to forward events of its producer",
    )
    PAYLOAD_INVALID = "b_payload_invalid", "the payload breaks the JSON Schema of its type and version"
    PAYLOAD_NOT_CANONICAL = (
        "b_payload_not_canonical",
        "the payload has no canonical form: a number past 2^53, a lone surrogate",
    )
    PAYLOAD_TOO_LARGE = "b_payload_too_large", "the envelope is larger than the bus takes"
    DUAL_MISSING = (
        "b_dual_publish_missing",
        "another major version is still in use and was not published along with this one",
    )
    RENDITIONS_DISAGREE = "b_renditions_disagree", "two versions of one event differ in more than version and payload"

    # What publishing adds: B2, B5
    IDEMPOTENCY_CONFLICT = "b_idempotency_conflict", "the idempotency key was used before, with another payload"
    EVENT_ID_REUSED = "b_event_id_reused", "the `event_id` belongs to another event"
    TYPE_FROZEN = "b_type_frozen", "publishing of this type is frozen: too many dead letters, or an operator's word"

    # Consuming (C§3)
    GROUP_UNKNOWN = "b_group_unknown", "there is no such consumer group"
    CONSUMER = (
        "b_consumer_not_allowed",
        "the token is not bound to the consumer group, or the group is handled by processes of the bus",
    )
    HANDLER_FAILED = "b_handler_failed", "the handler raised an error that names no code of its own"
    HANDLER_LOST = "b_handler_lost", "the process that held the event died or lost its lease before it was done"
    HANDLER_POISON = "b_handler_poison", "the handler says that no retry can help"
    WEBHOOK_STATUS = "b_webhook_status", "the webhook answered with a status other than 2xx"
    WEBHOOK_UNREACHABLE = "b_webhook_unreachable", "the webhook could not be reached, or did not answer in time"

    WEBHOOK_NAME = "b_webhook_name_invalid", "a webhook's name is not of the form that is asked for"
    WEBHOOK_EXISTS = "b_webhook_exists", "there is a webhook of this name already"
    WEBHOOK_URL = "b_webhook_url_invalid", "a webhook's URL is not http or https, or carries a name or password"
    WEBHOOK_ADDRESS = (
        "b_webhook_address_refused",
        "a webhook's URL names a loopback, private or link-local address that no setting names",
    )

    # Dead letters, replay, freeze (C§6, B5)
    RETRIES_EXHAUSTED = "b_retries_exhausted", "the event failed more often than `max_retries`"
    BULK_ACT_UNKNOWN = "b_bulk_act_unknown", "there is no such act on many dead letters"
    LETTER_UNKNOWN = "b_dead_letter_unknown", "the group has no dead letter for this event"
    LETTER_NOT_OPEN = "b_dead_letter_not_open", "the dead letter is being replayed, was replayed, or was discarded"
    REPLAY_UNCONFIRMED = "b_replay_unconfirmed", "the replay was not confirmed with the name of the consumer group"
    REPLAY_UNNAMED = "b_replay_unnamed", "a replay, discard, freeze or thaw must say who does it"
    DISCARD_UNEXPLAINED = "b_discard_unexplained", "a dead letter is discarded only with a reason"
    REPLAY_ASKED = "b_replay_asked", "an operator confirmed that the event goes to the failed group once more"
    REPLAY_SUCCEEDED = "b_replay_succeeded", "the replayed event was handled"
    DISCARDED = "b_discarded", "an operator discarded the dead letter"
    BACKLOG_OVER = "b_backlog_over_threshold", "the open dead letters of a type passed its threshold"
    BACKLOG_EMPTY = "b_backlog_empty", "the last open dead letter of a frozen type was dealt with"
    OPERATOR = "b_operator", "an operator's word"

    # The catalogue (B4)
    CATALOGUE_INVALID = "b_catalogue_invalid", "a contract in the catalogue breaks a rule of the format"
    EVOLUTION_MINOR = "b_evolution_needs_minor", "an optional field was added without a new minor version"
    EVOLUTION_MAJOR = (
        "b_evolution_needs_major",
        "a change other than a new optional field came without a new major version",
    )
    EVOLUTION_ORDER = "b_evolution_version_order", "versions go up one by one: none skipped, none taken back"
    EVOLUTION_REMOVED = (
        "b_evolution_removed",
        "a released event type or major version is gone without being retired first",
    )
    EVOLUTION_IN_USE = "b_evolution_in_use", "a major version is retired while a consumer still needs it"
    EVOLUTION_REVIVED = "b_evolution_revived", "a retired major version came back"

    CATALOGUE_BEHIND = (
        "b_catalogue_behind",
        "the publisher's catalogue is not the adopted one, and a subscribed group would miss the event",
    )

    STAGE = "b_stage_not_allowed", "a new major version cannot go to this stage from where it is"

    # Transports
    TRANSPORT_UNREACHABLE = "b_transport_unreachable", "the broker cannot be reached or did not confirm"
    STREAM_TRUNCATED = (
        "b_stream_truncated",
        "the stream begins after the position reached: messages expired before they were read",
    )


NOT_ADOPTED = frozenset(
    {
        Reason.CATALOGUE_BEHIND,
        Reason.EVOLUTION_MINOR,
        Reason.EVOLUTION_MAJOR,
        Reason.EVOLUTION_ORDER,
        Reason.EVOLUTION_REMOVED,
        Reason.EVOLUTION_REVIVED,
    }
)
"""Refusals for the sake of the adopted catalogue (B8): a process with that catalogue takes the same event."""

TEMPORARY = NOT_ADOPTED | {Reason.TYPE_FROZEN}
"""Refusals that end by themselves or by an operator's act: the same event is published later, so it is kept."""
