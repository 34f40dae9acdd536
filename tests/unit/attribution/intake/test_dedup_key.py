"""The priority of the keys of an event (§3.8.13), as the table of the specification has it."""

import pytest

from patra.attribution.intake.dedup_key import dedup_key

BY_IDEMPOTENCY_KEY = "f_dedup_v1:client_idempotency:app|idem"
BY_EVENT_ID_EVERYWHERE = "f_dedup_v1:client_event_id:app|global|event"
BY_EVENT_ID_OF_BATCH = "f_dedup_v1:client_event_id:app|batch|event"
BY_COMPUTED_KEY = f"f_dedup_v1:computed:{'ab' * 32}"


@pytest.mark.parametrize(
    ("idempotency_key", "event_id", "everywhere", "expected"),
    [
        ("idem", "event", False, BY_IDEMPOTENCY_KEY),
        ("idem", "event", True, BY_IDEMPOTENCY_KEY),
        ("idem", None, False, BY_IDEMPOTENCY_KEY),
        (None, "event", True, BY_EVENT_ID_EVERYWHERE),
        (None, "event", False, BY_EVENT_ID_OF_BATCH),
        (None, None, False, BY_COMPUTED_KEY),
    ],
)
def test_the_first_legal_key_is_taken(idempotency_key, event_id, everywhere, expected):
    found = dedup_key(
        "app",
        "batch",
        idempotency_key=idempotency_key,
        event_id=event_id,
        everywhere=everywhere,
        computed=bytes.fromhex("ab" * 32),
    )
    assert found == expected
