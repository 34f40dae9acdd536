"""Lines of a replay log in; ACKs, facts, audits, records and closures out (§3.8.6-§3.8.15, F9, F12, F19, F20, F23)."""

from tests.model.attribution import instants, keys
from tests.model.attribution.checks import check, is_text, window_of
from tests.model.attribution.closures import Closures
from tests.model.attribution.envelope import refusal
from tests.model.attribution.output import Output, audit


def run(lines):
    """An empty store, the lines one after the other, what is in the store then."""
    model = ModuleF()
    for line in lines:
        model.line(line)
    return model.finish()


class ModuleF:
    """The whole state of the processor: a ledger and a table of closures."""

    def __init__(self):
        self.output = Output()
        self.ledger = {}  # canonicalDedupKey -> {"first", "window", "fingerprint", "cycle", "line"}
        self.closures = Closures(self.output)
        self.line_number = 0

    def line(self, line):
        self.line_number += 1
        if "tick" in line:
            self.closures.apply_deadlines(instants.parse(line["tick"]))
        else:
            self.output.acks.append(self.submit(line["batch"], instants.parse(line["receivedAt"])))

    def finish(self):
        for key, closure in self.closures.table.items():
            self.output.closures.append(
                {"closureKey": key, "state": closure["state"], "terminalSource": closure["source"]}
            )
        return self.output

    # ---------------------------------------------------------------- a batch

    def submit(self, batch, received):
        """§3.8.6: the ACK body; of a refused envelope only its code (§3.8.7: nothing is answered one by one)."""
        code = refusal(batch)
        if code is not None:
            # CHOICE: a refused envelope is not an event (A1), so it leaves no trace and applies no deadline.
            return {"code": code}
        answers = {}  # index -> (status, code, serverEventKey)
        passed = []
        for index, raw in enumerate(batch["events"]):
            code, event = check(raw, batch, received)
            if code is None:
                passed.append((index, event))
                continue
            key = keys.server_event_key_without_dedup_key(batch["appId"], batch["batchId"], index)
            audit(self.output, key, "drop", code, decided=received)
            self.set_aside(raw, batch, index, code, key)
            answers[index] = ("rejected", code, key)

        for index, event in in_order_of_decision(passed):
            # A1, F13, F24: the deadlines of its own closure and click at or before its instant are applied first.
            self.closures.apply_deadlines(received, only=event["closureKey"])
            status, code, key = self.decide(event)
            if status == "rejected":
                self.set_aside(event["raw"], batch, index, code, key)
            answers[index] = (status, code, key)

        items = []
        for index, raw in enumerate(batch["events"]):
            status, code, key = answers[index]
            event_id = raw.get("eventId") if isinstance(raw, dict) else None
            items.append(
                {
                    "eventId": event_id,  # CHOICE: echoed as it was sent, of whatever type
                    "eventIndex": index,
                    "ackStatus": status,
                    "ackReasonCode": code,
                    "retryable": False,  # F10: everything the specification names
                    "serverEventKey": key,
                }
            )
        return {
            "batchId": batch["batchId"],
            "receivedAt": instants.format(received),
            "overallStatus": overall_status([item["ackStatus"] for item in items]),
            "ackItems": items,
        }

    def set_aside(self, raw, batch, index, code, key):
        """F19: raw into the quarantine when it lacks its `responseReference`, else a reject row without the payload.

        CHOICE: a type that needs none, known at step 1, does not lack it; of anything else it is missing or it is not.
        """
        row = {"batchId": batch["batchId"], "eventIndex": index, "code": code, "serverEventKey": key}
        if isinstance(raw, dict) and (
            is_text(raw.get("responseReference"))
            or raw.get("eventType") in ("opportunity_created", "auction_started")
            or (raw.get("eventType") == "error" and raw.get("renderAttemptId") is None)
        ):
            self.output.rejects.append(row)
        else:
            self.output.quarantine.append({**row, "raw": raw})

    # ---------------------------------------------------------------- an event

    def decide(self, event):
        """F2 steps 7, 8, 9 for an event that passed 1 to 6: `(ackStatus, ackReasonCode, serverEventKey)`."""
        base = keys.dedup_key(event)
        fingerprint = keys.computed_key(event)
        row = self.ledger.get(base)
        cycle = 1

        # Step 7 (F9). CHOICE: the window is that of the event which holds the row.
        if row is not None:
            if event["received"] - row["first"] <= row["window"]:
                key = keys.server_event_key(keys.in_cycle(base, row["cycle"]))
                if row["fingerprint"] != fingerprint:
                    return self.drop("rejected", "f_dedup_payload_conflict", key, event)
                # One writer, batch after batch: only the same batch is in flight.
                if row["line"] == self.line_number:
                    return self.drop("duplicate", "f_dedup_inflight_duplicate", key, event)
                return self.drop("duplicate", "f_dedup_committed_duplicate", key, event)
            cycle = row["cycle"] + 1
        event["key"] = keys.in_cycle(base, cycle)
        server_key = keys.server_event_key(event["key"])

        # Step 8 (F23): no ledger row. CHOICE: any event with a complete closure key, whether or not its type could
        # open a closure.
        closure = self.closures.get(event["closureKey"])
        if closure is not None and closure["appId"] != event["appId"]:
            return self.drop("rejected", "f_closure_foreign_app", server_key, event)

        # Step 9. All that follows is accepted, or duplicate for a closure or billing reason: it holds a row (F9).
        self.ledger[base] = {
            "first": event["received"],
            "window": window_of(event["eventType"]),
            "fingerprint": fingerprint,
            "cycle": cycle,
            "line": self.line_number,
        }
        status, code = self.closures.decide(event)
        return status, code, server_key

    def drop(self, status, code, server_key, event):
        """F20: ledger duplicates, payload conflicts and rejections."""
        audit(self.output, server_key, "drop", code, decided=event["received"])
        return status, code, server_key


def in_order_of_decision(passed):
    """F12: by `eventAt`, `eventId` as text, position; a terminal error waits for the others if its closure also has an
    impression among them.
    """
    impressions = [event["closureKey"] for _, event in passed if event["eventType"] == "impression"]

    def order(item):
        index, event = item
        waits = event["isTerminalError"] and event["closureKey"] in impressions
        return waits, event["at"], event["eventIdText"], index

    return sorted(passed, key=order)


def overall_status(statuses):
    """§3.8.7."""
    if all(status == "accepted" for status in statuses):
        return "accepted_all"
    if all(status == "rejected" for status in statuses):
        return "rejected_all"
    return "partial_success"
