"""Every code that the running side of ingest gives, with one line on when (ch. 9, 10, 12)."""

from patra.kernel.reason import ReasonCode


class RunReason(ReasonCode):
    # an answer or its absence (ch. 12.1)
    OK = "i_ok", "an answer of the expected kind"
    PACK_RULE = "i_pack_rule", "a rule of the pack's `errors` decided"
    TIMEOUT = "i_timeout", "L1: no connection or no bytes within the time limit"
    DNS = "i_dns", "L1: the host's name could not be resolved"
    TLS = "i_tls", "L1: the TLS handshake failed, or the certificate does not fit"
    CONNECT = "i_connect", "L1: the connection was refused or the network is unreachable"
    RESET = "i_reset", "L1: the connection was cut before or while the answer came"
    TRUNCATED = "i_truncated", "L1: the body ended before its announced or its grammatical end"
    NOT_TEXT = "i_bad_encoding", "L1: the body does not decode as its Content-Encoding says"
    TOO_LARGE = "i_too_large", "L2: the body passes the bound; smaller pages or slices are needed"
    UNSENDABLE = "i_unsendable", "L2: the rendered request is refused before it is sent"
    HOST_REFUSED = "i_host_refused", "L4: a URL or redirect leads off the declared hosts (ruling I8)"
    REDIRECT_REFUSED = "i_redirect_refused", "L2: a redirect that the pack does not allow, or too many"
    THROTTLED = "i_throttled", "L1: 429, or a status that the pack calls retryable, with Retry-After"
    SERVER_ERROR = "i_server_error", "L1: a 5xx or another status that the pack calls retryable"
    REQUEST_REFUSED = "i_request_refused", "L2: a 4xx that a second attempt would meet again"
    NOT_FOUND = "i_not_found", "L2: 404 or 410"
    URI_TOO_LONG = "i_uri_too_long", "L2: 413 or 414; send ids by POST or in smaller groups"
    UNAUTHORIZED = "i_unauthorized", "L4: 401 or 407: the credential is missing, wrong or expired"
    ERROR_PAGE = "i_error_page", "L1: an HTML page, or another content type than expected, with status 200"
    UNREADABLE = "i_unreadable", "L1: the body is complete but is not what its format says"
    EMPTY_BODY = "i_empty_body", "L1: status 200 and no body where a document belongs"
    NO_LIST = (
        "i_no_list",
        "L1: the answer has no list, or an empty one, although the total, or what else the list said, promises records",
    )
    NO_CONTENT = "i_no_content", "no records: 204, or what the pack calls empty"
    SCHEMA_CHANGED = "i_schema_changed", "L4: the document lacks `itemsPath`; asked for a second time before it counts"
    SIGNING_FAILED = "i_signing_failed", "L4: the signing hook raised, or is not known"
    CREDENTIAL_MISSING = "i_credential_missing", "L4: the credential's reference leads to nothing"
    SECRET_WITHHELD = "i_secret_withheld", "L4: the installation has not allowed this source to read the secret"
    TOKEN_REFUSED = "i_token_refused", "L4: the token endpoint refused the client's credentials"

    # a record (ch. 11.8)
    NO_ID = "i_no_id", "L3: `idPath` gives nothing"
    NO_UPDATED_AT = "i_no_updated_at_value", "L3: `updatedAtPath` gives nothing that means an instant"
    FIELD_MISSING = "i_field_missing", "L3: a required field is missing"
    FIELD_INVALID = "i_field_invalid", "L3: a field has a value of another kind, or one that is not on its list"
    FIELD_FAILED = "i_field_failed", "L3: an expression of a field failed"
    RECORD_TOO_LARGE = "i_record_too_large", "L3: the record is larger than a row may be"
    ID_MISSING_DETAIL = "i_id_without_detail", "L3: an id for which the detail endpoint gave no record"

    # walking a list (ch. 4.3.3)
    NEXT = "i_next", "there is, or may be, a next page"
    END_HAS_MORE = "i_end_has_more", "the end: `hasMorePath` says so"
    END_NO_NEXT = "i_end_no_next", "the end: no next token or URL"
    END_SHORT = "i_end_short_page", "the end: fewer records than the page size"
    END_EMPTY = "i_end_empty_page", "the end: an empty page"
    END_TOTAL = "i_end_total", "the end: as many records as the total says"
    END_REPEATED = "i_end_repeated_token", "the end: the token that was sent came back, which this provider means so"
    END_RANGE = "i_end_range", "the end of the slice's own pages or ids"
    END_ORDERED = "i_end_ordered", "the end: the list is in order, and the rest of it lies outside the window"
    END_WINDOW = "i_end_window", "the end: TIME paging reached the window's end"
    PROBE = "i_probe", "the last page is asked for once more before its end is believed"
    LOOP = "i_loop", "the provider repeats a token, URL or page: stopped before it turns for ever"
    BRIDGE = "i_bridge_to_time", "`maxPage` is reached: the rest of the window is cut into smaller ones"
    MAX_PAGE = "i_max_page", "`maxPage` is reached and nothing narrower can be asked for: records are left behind"
    TOO_DEEP = (
        "i_too_deep",
        "the total passes `maxDepth`: the slice is cut in two before its pages are read (ruling I4)",
    )
    TOO_DEEP_AT_SMALLEST = "i_too_deep_at_smallest", "the smallest window is still deeper than the provider can page"
    TOKEN_EXPIRED = (
        "i_token_expired",
        "the token is not known any more: the slice starts again from its confirmed point",
    )
    STUCK_INSTANT = (
        "i_stuck_instant",
        "TIME paging cannot get past one instant: more records share it than a page holds",
    )
    INCOMPLETE = (
        "i_incomplete",
        "less came than the total promises, also when it was asked for again: the window is not done (ruling I10)",
    )
    DRIFTED = "i_drifted", "the list changed while it was read: it is read once more"

    # runs and tasks (ch. 9)
    LEASED = "i_leased", "an executor took the task"
    STARTED = "i_started", "the first batch of a run begins"
    DONE = "i_done", "everything the slice asked for has landed"
    LEASE_EXPIRED = "i_lease_expired", "the executor was not heard of in time; the task is free again"
    STOPPED = "i_stopped", "the executor was asked to stop; the task is free again"
    CANCELLED = "i_cancelled", "an operator cancelled the plan, slice or task"
    PUT_BACK_RATE = "i_put_back_rate", "no permit within the deadline: the task waits for the rate gate"
    PUT_BACK_QUOTA = "i_put_back_quota", "the quota is used up: the task waits for the next window"
    PUT_BACK_BREAKER = "i_put_back_breaker", "the circuit of the source or endpoint is open: the task waits"
    PUT_BACK_L1 = (
        "i_put_back_transient",
        "transient failures used up the attempts of a batch: the task waits and goes on",
    )
    PUT_BACK_VERSION = (
        "i_put_back_version",
        "a newer version of this program has written the plan or slice: the task waits for an executor of that version",
    )
    GAVE_UP = "i_gave_up", "transient failures used up all runs of the task"
    FAILED_L2 = "i_failed_request", "the provider refuses the request for good"
    FAILED_L4 = "i_failed_fatal", "a fatal error; the source or endpoint is halted"
    BUDGET_SPENT = "i_budget_spent", "the slice's budget of requests or time is used up; the rest went to a new slice"
    BROKEN = "i_broken", "an unforeseen error in this program; the run says which"

    # healing (ch. 12.2)
    QPS_DOWNSHIFT = "i_qps_downshift", "too many 429, or a Retry-After: the rate of the partition is lowered"
    CONCURRENCY_DOWN = "i_concurrency_down", "batches take too long: fewer tasks of the partition at the same time"
    PAGE_SHRINK = "i_page_shrink", "batches take too long or are too large: smaller pages"
    RESLICE = "i_reslice", "deeper, larger or more throttled than planned: the rest is cut smaller"
    KEY_RANGES = (
        "i_key_ranges",
        "the list is deeper than the provider can page: it is read in ranges of a number",
    )
    CIRCUIT_OPEN = "i_circuit_open", "failures in a row: nothing is sent for a while"
    CIRCUIT_PROBE = "i_circuit_probe", "after the pause one request may try"
    CIRCUIT_CLOSED = "i_circuit_closed", "the try succeeded"
    HALTED = "i_halted", "L4: nothing is sent until an operator lifts it"
    LIFTED = "i_lifted", "an operator lifted the halt"
    TASK_STOPPED = "i_task_stopped", "more refused requests than the threshold: the task stops"

    # cursors (ch. 10, ruling I2)
    ADVANCED = "i_advanced", "the present value moved forward"
    NOT_FORWARD = "i_not_forward", "the event does not move the present value: it lies at or behind it"
    BEHIND_HOLE = "i_behind_hole", "the window is finished but an earlier one is not: remembered, applied when that is"

    # replays (ch. 14.9.2)
    REPLAY_EQUAL = "i_replay_equal", "the same request, and the same answer in everything that decides"
    REPLAY_CHANGED = "i_replay_changed", "the same request; the provider answers otherwise now than it did then"
    REPLAY_REQUEST = "i_replay_request_differs", "the request cannot be rendered again as it was sent"
    REPLAY_UNANSWERED = "i_replay_unanswered", "the request is the same, but no usable answer came this time"
