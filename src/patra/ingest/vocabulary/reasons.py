"""Every code that the planning side of ingest gives, with one line on when (ch. 3.3.3, 4.17, 5.9, 8)."""

from patra.kernel.reason import ReasonCode


class Reason(ReasonCode):
    # reading a pack
    PACK_UNREADABLE = "i_pack_unreadable", "the file cannot be read, is too large or is not YAML"
    PACK_UNKNOWN_FIELD = "i_pack_unknown_field", "a field that the format does not have"
    PACK_MISSING_FIELD = "i_pack_missing_field", "a field that the format requires is not there"
    PACK_DUPLICATE_KEY = "i_pack_duplicate_key", "a key stands twice in one mapping"
    PACK_WRONG_TYPE = "i_pack_wrong_type", "a value of another type than the field has"
    PACK_OUT_OF_BOUNDS = "i_pack_out_of_bounds", "a value outside the bounds of its field"
    PACK_BAD_DURATION = "i_pack_bad_duration", "not an ISO 8601 duration of fixed length"
    PACK_BAD_PATTERN = "i_pack_bad_pattern", "not a pattern of our kind"
    PACK_BAD_SECRET = "i_pack_bad_secret", "a secret written out, or a reference of no known kind"
    PACK_BAD_NAME = "i_pack_bad_name", "a name with characters that names do not have"
    PACK_BAD_FORMAT = "i_pack_bad_format", "a time format or a schedule that means nothing"
    PACK_UNKNOWN_FUNCTION = "i_pack_unknown_function", "a function or cleaner that is not on the list"
    PACK_BAD_REFERENCE = "i_pack_bad_reference", "a name that refers to nothing in the pack"

    # the checks of 3.3.3 and the nine of 4.17
    CODE_UNKNOWN = "i_code_unknown", "4.17(7): a code that is not in the system dictionary, or is disabled there"
    AUTH_MISMATCH = "i_auth_mismatch", "4.17(1): the authentication does not fit the endpoint, or cannot work"
    PAGING_PATH_MISSING = "i_paging_path_missing", "4.17(2): the pagination type lacks the path or number it needs"
    PAGING_CONFLICT = "i_paging_conflict", "4.3.4: fields of two kinds of pagination at once"
    WINDOW_UNSUPPORTED = (
        "i_window_unsupported",
        "4.17(3): no filter by time, and no stable order with a filter of our own",
    )
    WINDOW_INVALID = "i_window_invalid", "3.3.3: widths, alignment or bounds of a window contradict each other"
    TWO_PHASE_INCOMPLETE = "i_two_phase_incomplete", "4.17(4): the detail endpoint or its id template is missing"
    PATHS_INCOMPLETE = "i_paths_incomplete", "4.17(5): itemsPath, idPath or updatedAtPath is missing or cannot be read"
    PATH_INVALID = "i_path_invalid", "a JSONPath or XPath that does not compile"
    SHAPE_INVALID = "i_shape_invalid", "an output of shape work maps a field that a work does not have, or nothing"
    LIMIT_EXCEEDED = "i_limit_exceeded", "4.17(6): more than the provider allows is asked for"
    NAMESPACE_MISMATCH = "i_namespace_mismatch", "4.17(8): cursor, namespace or direction does not fit the operation"
    UNSAFE = "i_unsafe", "4.17(9): signing hook, credential reference or redaction is missing"
    EXTENSION_UNKNOWN = "i_extension_unknown", "an extension that the pack names is not installed or cannot be imported"
    SCHEDULE_INVALID = "i_schedule_invalid", "a schedule that says too little or something its operation does not use"
    SECRET_NOT_ALLOWED = "i_secret_not_allowed", "the pack names a secret that this installation has not allowed for it"
    SECRET_ABSENT = (
        "i_secret_absent",
        "this process does not have the secret that the endpoint asks with; nothing was planned",
    )
    REQUIRED_MISSING = "i_required_missing", "3.3.3: base URL, method or another part that every request needs"
    EXPR_INVALID = "i_expr_invalid", "an expression that does not compile, or reads what it must not"
    HOST_INVALID = "i_host_invalid", "a URL that is not HTTPS or leaves the declared hosts"
    PARAM_INVALID = "i_param_invalid", "a parameter that is missing, unknown or refused by its rule"

    # lesser ways, taken with a warning (ch. 3.6, 12.4)
    NO_COUNT = "i_no_count", "no totalPath: sizes are estimated from history"
    HAS_NEXT_BY_PAGE_SIZE = (
        "i_has_next_by_page_size",
        "no hasMorePath: the page size decides whether there is a next page",
    )
    CLIENT_FILTER = "i_client_filter", "no filter by time at the provider: records are filtered here"
    NO_UPDATED_AT = "i_no_updated_at", "ids carry no update time: it comes with the details"
    UPDATE_TIME_STILL = (
        "i_update_time_still",
        "the update time does not move when a record changes, and neither a version nor the content decides",
    )
    UNSTABLE_ORDER = (
        "i_unstable_order",
        "no stable order and no snapshot at the provider: the last page is read once more",
    )
    ANONYMOUS = "i_anonymous", "the credential is optional: without its secret the endpoint is read anonymously"

    # rendering a request (ch. 4.8)
    RENDER_FAILED = "i_render_failed", "an expression of the request has no value or fails"
    RENDER_UNSAFE = (
        "i_render_unsafe",
        "a rendered value holds line breaks, control characters or a way out of its place",
    )
    RENDER_REFUSED = "i_render_refused", "a rendered value is refused by the pattern, list or length of its parameter"
    RENDER_TOO_LONG = "i_render_too_long", "the URL is longer than the provider takes"
    RENDER_OFF_HOST = "i_render_off_host", "the URL leaves the declared hosts (ruling I8)"

    # triggers, plans, slices
    SOURCE_UNKNOWN = "i_source_unknown", "no such source is loaded"
    ENDPOINT_UNKNOWN = "i_endpoint_unknown", "the source has no such endpoint"
    PLAN_UNKNOWN = "i_plan_unknown", "there is no such plan"
    SLICE_UNKNOWN = "i_slice_unknown", "there is no such slice"
    TASK_UNKNOWN = "i_task_unknown", "there is no such task"
    SCHEDULE_UNKNOWN = "i_schedule_unknown", "there is no such schedule"
    ALERT_UNKNOWN = "i_alert_unknown", "there is no such alert, or it is over"
    ALERT_UNTIL_INVALID = "i_alert_until_invalid", "an acknowledgement or silence that does not end within 30 days"
    ALERT_UNEXPLAINED = "i_alert_unexplained", "a silence without a reason"
    OPERATION_UNSUPPORTED = "i_operation_unsupported", "the endpoint cannot do this operation"
    SOURCE_DISABLED = "i_source_disabled", "the pack of this source is disabled"
    PAUSED = "i_paused", "an operator paused the source or endpoint"
    BREAKER_OPEN = "i_breaker_open", "a fatal error halted the source or endpoint until an operator lifts it"
    WINDOW_EMPTY = "i_window_empty", "nothing lies between the watermark and now minus the safety lag"
    WINDOW_COVERED = "i_window_covered", "every part of the window is done or under way"
    WATERMARK_REPLACED = (
        "i_watermark_replaced",
        "the pack names another watermark than the harvest before it: the first window begins before where that stood",
    )
    NO_CANDIDATES = "i_no_candidates", "no record is due for a refresh"
    PLANNED = "i_planned", "the trigger made a plan"
    SLICED = "i_sliced", "the plan is cut into slices, each with its task"
    INVENTORY_FULL = "i_inventory_full", "enough tasks are queued; the plan goes on when there are fewer"
    QUOTA_SHORT = "i_quota_short", "the quota of this period is used up; later slices are due in the next one"
    TICK_MISSED = "i_tick_missed", "the schedule skips ticks that are late (missed: NONE), and this one was"
    SCHEDULE_EXISTS = "i_schedule_exists", "there is a schedule of this name, or it belongs to a pack"
    TRIGGER_FAILED = "i_trigger_failed", "planning a schedule's tick failed in a way that will not pass by itself"
    NOT_STAGED = "i_not_staged", "no version of the pack is on trial"
    PLAN_FAILED = "i_plan_failed", "the plan cannot be cut into slices; its remarks say why, its tasks are cancelled"
    OPTION_UNUSED = "i_option_unused", "the trigger says something that its operation does not use"
    COMPILE_FAILED = "i_compile_failed", "the snapshot did not compile; the schedule instance says why"
    RESLICED = "i_resliced", "the rest of a slice was cut into smaller ones"
    RESLICE_REFUSED = "i_reslice_refused", "the slice is as small as it may be and is still too large"
    RESUMED = "i_resumed", "the plan goes on after a pause or a crash"

    # operators' acts (ch. 5.9)
    OPERATOR = "i_operator", "an operator asked for it"
