"""Every code that attribution gives, with one line on when it is given (§3.8.5 to §3.8.29, F1 to F23)."""

from patra.kernel.reason import ReasonCode


class Reason(ReasonCode):
    # The envelope (F11): the whole batch is refused
    BATCH_MALFORMED = "f_batch_malformed", "the body is not JSON, or not an object"
    BATCH_MISSING_REQUIRED = (
        "f_batch_missing_required",
        "a required field of the envelope is absent, null or empty (an empty `events` is `f_batch_events_invalid`)",
    )
    BATCH_ID_INVALID = "f_batch_id_invalid", "`batchId` or `appId` is not 1 to 128 characters of A-Z a-z 0-9 . _ : -"
    BATCH_SCHEMA_UNSUPPORTED = "f_batch_schema_unsupported", "`schemaVersion` is neither the text `1` nor `1.0`"
    BATCH_EVENTS_INVALID = "f_batch_events_invalid", "`events` is not an array, is empty, or holds more than 100"

    # The intake, which took nothing of the batch (F10, F11)
    BODY_TOO_LARGE = "f_body_too_large", "the body, or what it inflates to, is larger than 1 MiB"
    ENCODING_UNSUPPORTED = "f_encoding_unsupported", "`Content-Encoding` is none of gzip, zstd and identity"
    ENCODING_MALFORMED = "f_encoding_malformed", "the body is not what its `Content-Encoding` says"
    APP_KEY_MISSING = "f_app_key_missing", "app keys are in use, and the request carries none that is known"
    APP_KEY_FOREIGN = "f_app_key_foreign", "the key belongs to another app than the batch's `appId`"
    APP_NOT_BOUND = (
        "f_app_not_bound",
        "`attribution.require_signing` is on, and the batch's app is bound to no signing secret",
    )
    RESPONSE_PROOF_MISSING = (
        "f_response_proof_missing",
        "the app is bound to a signing secret, and a `responseReference` has no proof in `extensions.responseProofs`",
    )
    RESPONSE_PROOF_INVALID = (
        "f_response_proof_invalid",
        "the proof of a `responseReference` is not made with a signing secret of the batch's app",
    )
    STORE_UNAVAILABLE = "f_store_unavailable", "the store cannot be written; the event was not taken: send it again"
    INTAKE_OVERLOADED = "f_intake_overloaded", "the intake is shedding load; the batch was not taken: send it later"

    # Accepted, as F8 has it
    ACCEPTED = "f_accepted", "the event is new and passes every check"
    ACCEPTED_UNKNOWN_ENUM = "f_accepted_unknown_enum", "accepted; a sub-enum value is not known and stored as `unknown`"
    IDEMPOTENCY_KEY_FALLBACK = (
        "f_idempotency_key_invalid_fallback",
        "accepted; the `idempotencyKey` is illegal and was ignored in favour of the next key",
    )

    # Checks 1 to 6 of one event (F2)
    TYPE_UNSUPPORTED = "f_event_type_unsupported", "`eventType` is none of the eight input types"
    MISSING_REQUIRED = (
        "f_event_missing_required",
        "not a JSON object, a required field is missing, or `eventIdScope` is neither of its two values",
    )
    ID_INVALID_NO_FALLBACK = (
        "f_event_id_invalid_no_fallback",
        "`eventId` is illegal and a required field is missing, so that no computed key can be built",
    )
    TIME_INVALID = (
        "f_event_time_invalid",
        "`eventAt` is not an RFC 3339 instant with an offset, or lies more than 24 h ahead of `receivedAt`",
    )
    UNIQUENESS_UNVERIFIED = (
        "f_event_id_global_uniqueness_unverified",
        "`eventIdScope` is `global_unique`, and `eventId` has not the form that the batch declares",
    )
    STALE = "f_event_stale_outside_dedup_window", "`eventAt` lies further back than the dedup window of its tier"

    # Dedup and owner: F9, F23
    DEDUP_INFLIGHT = (
        "f_dedup_inflight_duplicate",
        "the same event stands earlier in the same batch, or is being written",
    )
    DEDUP_COMMITTED = "f_dedup_committed_duplicate", "the same event was taken before, within its dedup window"
    DEDUP_CONFLICT = "f_dedup_payload_conflict", "the key was used before, within its window, for another event"
    FOREIGN_APP = "f_closure_foreign_app", "the closure was opened by another app"

    # Closures (§3.8.18, §3.8.19, F13, F14, F17)
    TIMEOUT = (
        "f_terminal_timeout_autofill",
        "no terminal event came within 120 s: the failure was written by the system",
    )
    DUPLICATE_FAILURE = "f_terminal_duplicate_failure", "a failure on a closure that has failed already"
    FAILURE_AFTER_IMPRESSION = (
        "f_terminal_conflict_failure_after_impression",
        "a failure on a closure that has its impression",
    )
    IMPRESSION_AFTER_FAILURE = (
        "f_terminal_conflict_impression_after_failure",
        "an impression on a closure that failed by a real terminal error",
    )
    TIMEOUT_SUPERSEDED = (
        "f_terminal_timeout_superseded",
        "a move of the journal: a late impression superseded the synthesised failure",
    )

    # Billing (§3.8.24, F15, F16) and postbacks (F18)
    DUPLICATE_IMPRESSION = (
        "f_billing_conflict_duplicate_impression",
        "a second impression on a closure that has its impression",
    )
    DUPLICATE_CLICK = (
        "f_billing_conflict_duplicate_click",
        "a click on a closure that has a billable click, or one still pending",
    )
    CLICK_WITHOUT_IMPRESSION = (
        "f_billing_click_without_impression",
        "a pending click's 120 s passed and no impression had come",
    )
    CLICK_INELIGIBLE = "f_billing_ineligible_terminal_failure", "a click on a closure that has failed: never billable"
    POSTBACK_CONFLICT = (
        "f_postback_terminal_conflict",
        "a postback says `success` of a failed closure, or `failed` of a successful one",
    )

    # Output to the archive (§3.8.28, §3.8.29)
    MISSING_VERSION_ANCHOR = "f_output_missing_version_anchor", "a record lacks one of its six version anchors"
    RECORDKEY_MISMATCH = (
        "f_output_recordkey_payload_mismatch",
        "the archive holds another payload under the same `recordKey`",
    )
    COMPENSATION_EXHAUSTED = (
        "f_output_archive_compensation_exhausted",
        "the archive did not take the record within 15 minutes of retries",
    )
    ARCHIVE_TIMEOUT = "g_archive_write_timeout", "the archive did not answer in time; the record is written again"
    ARCHIVE_UNAVAILABLE = (
        "g_archive_temporarily_unavailable",
        "the archive cannot be reached; the record is written again",
    )
    ARCHIVE_RATE_LIMITED = "g_archive_rate_limited", "the archive asks for fewer records; the record is written again"
    ARCHIVE_REFUSED = "g_archive_refused", "the archive will never take the record"


RETRYABLE = frozenset({Reason.STORE_UNAVAILABLE, Reason.INTAKE_OVERLOADED})
"""The only codes that a client may send the same event again for (F10)."""
