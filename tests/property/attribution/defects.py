"""A sound event or batch in; the same with one thing wrong, or odd but allowed, out (F2-F6, F11)."""

COMMON = ["traceKey", "requestKey", "attemptKey", "opportunityKey", "eventVersion", "eventAt", "responseReference"]
OWN = {
    "opportunity_created": ["placementKey"],
    "auction_started": ["auctionChannel"],
    "ad_filled": ["creativeId"],
    "impression": ["renderAttemptId", "creativeId"],
    "click": ["renderAttemptId", "clickTarget"],
    "interaction": ["renderAttemptId", "interactionType"],
    "postback": ["postbackType", "postbackStatus"],
    "error": ["errorStage", "errorCode"],
}
ENUMS = {
    "auction_started": "auctionChannel",
    "interaction": "interactionType",
    "postback": "postbackStatus",
    "error": "errorStage",
}

NOT_OBJECTS = [None, 5, "event", [], True, 1.5, [{"eventType": "click"}]]
NOT_TEXTS = [None, "", 5, 1.5, True, [], {}, "x" * 1025, "é" * 1025]
ILLEGAL_IDS = ["", "no id", 5, "x" * 129, "é", "😀", "\uffff", ["e1"], {}, False, 0, "e1\n", "e1|e2", "\x00"]
TYPES = ["failure", "Click", "view", "", None, 5, ["click"], "x" * 1024, "x" * 1025]
SCOPES = ["batch_scoped", "global_unique", None, "", "global", 5, [], {}, "GLOBAL_UNIQUE"]
INSTANTS = [
    "",
    "now",
    "2026-03-01",
    "2026-03-01T00:00:00",
    "2026-03-01 00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-03-01T25:00:00Z",
    "2026-03-01T00:00:00+2",
    "2026-03-01T00:00:00+0200",
    "2026-03-01T00:00:00.Z",
    "2026-03-01T00:00:00Z ",
    1772323200,
    1772323200.5,
    True,
    [],
    {},
    None,
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
]
VERSIONS = [1, 0, -3, 10**30, 2**63, 2**64, "v" * 1024, 1.0, 1.5, True, None, "", [], "2.0"]
ODD_TEXTS = [
    "y" * 1024,
    "😀" * 1024,
    "nul\x00here",
    "a|b",
    "NA",
    " ",
    "\u202e",
    "'; DROP TABLE att_fact; --",
    '"',
    "\\u0000",
    "é",
]
EXTRAS = [
    {"whatever": 1},
    {"extensions": {"a": [None]}},
    {"extensions": 5},
    {"billingKey": "x"},
    {"errorClass": 5},
    {"key": "#2"},
]
UNKNOWN_VALUES = ["zz", "unknown", "Success", "x" * 1024, " close", "\x00"]

EVENT_DEFECTS = {
    "extra field": 2,
    "unknown sub-enum": 4,
    "illegal idempotency key": 4,
    "illegal event id": 4,
    "event version": 2,
    "odd text": 3,
    "absent field": 4,
    "not text": 4,
    "two absent fields": 1,
    "scope": 4,
    "no event id": 2,
    "instant": 3,
    "type": 2,
    "not an object": 1,
    "odd render attempt": 3,
    "odd response reference": 2,
}


def spoil(dice, event):
    """One defect of `EVENT_DEFECTS` in a copy of the event."""
    kind = event["eventType"]
    fields = [*COMMON, *OWN.get(kind, [])]
    made = dict(event)
    defect = dice.weighted(EVENT_DEFECTS)
    if defect == "extra field":
        made |= dice.pick(EXTRAS)
    elif defect == "unknown sub-enum":
        if kind in ENUMS:
            made[ENUMS[kind]] = dice.pick(UNKNOWN_VALUES)
    elif defect == "illegal idempotency key":
        made["idempotencyKey"] = dice.pick(ILLEGAL_IDS)
    elif defect == "illegal event id":
        made["eventId"] = dice.pick(ILLEGAL_IDS)
        if dice.one_in(3):
            made.pop(dice.pick(fields), None)
    elif defect == "event version":
        made["eventVersion"] = dice.pick(VERSIONS)
    elif defect == "odd text":
        made[dice.pick([name for name in fields if name != "eventAt"])] = dice.pick(ODD_TEXTS)
    elif defect == "absent field":
        made.pop(dice.pick(fields), None)
    elif defect == "not text":
        made[dice.pick(fields)] = dice.pick(NOT_TEXTS)
    elif defect == "two absent fields":
        made.pop(dice.pick(fields), None)
        made.pop(dice.pick(["eventId", *fields]), None)
    elif defect == "scope":
        made["eventIdScope"] = dice.pick(SCOPES)
    elif defect == "no event id":
        if dice.one_in(2):
            made["eventId"] = None
        else:
            made.pop("eventId", None)
    elif defect == "instant":
        made["eventAt"] = dice.pick(INSTANTS)
    elif defect == "type":
        made["eventType"] = dice.pick(TYPES)
    elif defect == "not an object":
        return dice.pick(NOT_OBJECTS)
    elif defect == "odd render attempt":
        made["renderAttemptId"] = dice.pick(NOT_TEXTS)
        if dice.one_in(3):
            made.pop("responseReference", None)
    else:
        made["responseReference"] = dice.pick(NOT_TEXTS)
    return made


REQUIRED = ["batchId", "appId", "sdkVersion", "sentAt", "schemaVersion", "events"]
NOT_BATCHES = [None, 5, "batch", [], True, [{"batchId": "b1"}], {}]
NO_EVENTS = [[], {}, "", "events", 5, {"0": {}}, True, [None] * 101]
SCHEMAS = ["1.0", "2", 1, 1.0, "1.00", " 1", "", True]
BATCH_EXTENSIONS = [
    {"eventIdUniqueness": "uuid"},
    {"eventIdUniqueness": "ulid"},
    {"eventIdUniqueness": "UUID"},
    {"eventIdUniqueness": ["uuid"]},
    {"eventIdUniqueness": None},
    {},
    None,
    [],
    "uuid",
]
BATCH_DEFECTS = [
    "odd but allowed",
    "extensions",
    "schema",
    "absent",
    "null",
    "empty",
    "illegal id",
    "events",
    "not a batch",
    "several",
]


def spoil_batch(dice, batch):
    """One defect of `BATCH_DEFECTS` (or several) in a copy of the batch."""
    made = dict(batch)
    defect = dice.pick(BATCH_DEFECTS)
    if defect == "odd but allowed":
        made |= dice.pick([{"sdkVersion": 5}, {"sentAt": "never"}, {"sentAt": 0}, {"retrySequence": "x"}, {"more": 1}])
    elif defect == "extensions":
        made["extensions"] = dice.pick(BATCH_EXTENSIONS)
    elif defect == "schema":
        made["schemaVersion"] = dice.pick(SCHEMAS)
    elif defect == "absent":
        made.pop(dice.pick(REQUIRED))
    elif defect == "null":
        made[dice.pick(REQUIRED)] = None
    elif defect == "empty":
        made[dice.pick(REQUIRED)] = dice.pick(["", [], {}])
    elif defect == "illegal id":
        made[dice.pick(["batchId", "appId"])] = dice.pick(ILLEGAL_IDS)
    elif defect == "events":
        made["events"] = dice.pick(NO_EVENTS)
    elif defect == "not a batch":
        return dice.pick(NOT_BATCHES)
    else:
        for name in REQUIRED:
            if dice.one_in(2):
                made[name] = dice.pick([None, "", "no id", 5, []])
    return made
