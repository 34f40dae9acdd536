"""Rate and quota: the periods of now are shown, past ones are not; a cool-down is over when its instant has passed."""

from patra.kernel.clock import DAY, HOUR, MINUTE
from tests.unit.web.console.test_application import page
from tests.unit.web.served import served


def test_only_the_periods_of_now_and_what_cools_down():
    with served() as client:
        now = client.patra.clock.now()
        day = now // DAY * DAY

        def write(tx) -> None:
            common = {"reserved": 7, "updated_at": now}
            tx.insert(
                "ing_quota",
                [
                    {"rate_key": "today", "period_code": "DAY", "period_start": day, "consumed": 41, **common},
                    {"rate_key": "before", "period_code": "DAY", "period_start": day - DAY, "consumed": 9, **common},
                ],
            )
            tx.insert(
                "ing_cooldown",
                [
                    {"rate_key": "cooling", "cooldown_until": now + HOUR, "updated_at": now},
                    {"rate_key": "rested", "cooldown_until": now - MINUTE, "updated_at": now},
                ],
            )

        client.patra.db.run(write)
        text = page(client, "/console/ingest/rate").data.decode()
    assert "<h1>1 provider is cooling down</h1>" in text
    assert ">today<" in text
    assert ">41<" in text
    assert ">before<" not in text
    assert text.count("cooling down</span>") == 1
    assert ">rested<" in text
