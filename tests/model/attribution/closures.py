"""An event that the ledger has let through in; what it does to its closure, and the facts and audits of it, out.

§3.8.17-§3.8.19, §3.8.22-§3.8.24, F8, F13-F18, F20. Deadlines too (§3.8.18, A1).
"""

from tests.model.attribution import keys
from tests.model.attribution.instants import SECOND
from tests.model.attribution.output import attribution_fact, audit, billable_fact

TERMINAL_WAIT = 120 * SECOND  # §3.8.18

# §3.8.22, but for impression, click, postback and the terminal error, which have rules of their own.
PLAIN_ATTRIBUTION = {
    "opportunity_created": "attr_opportunity_created",
    "auction_started": "attr_auction_started",
    "ad_filled": "attr_ad_filled",
    "interaction": "attr_interaction",
    "error": "attr_error",
}

# F13: accepted events of these types open a closure that is not there.
OPENERS = ("ad_filled", "interaction", "click", "error")


class Closures:
    """The table of closures. Those that are due are brought up to date by `apply_deadlines` before any event."""

    def __init__(self, output):
        self.output = output
        self.table = {}  # closureKey -> {"appId", "state", "source", "deadline", "opener", "timeout", "pending", ...}

    def get(self, key):
        return self.table.get(key)

    def decide(self, event):
        """F2 step 9: `(ackStatus, ackReasonCode)`."""
        closure = self.table.get(event["closureKey"])
        if event["eventType"] == "impression":
            return self.impression(event, closure)
        if event["isTerminalError"]:
            return self.terminal_error(event, closure)
        if event["eventType"] == "click":
            return self.click(event, closure)
        if event["eventType"] == "postback":
            return self.postback(event, closure)
        return self.plain(event, closure)

    def emit(self, event, action, reason):
        audit(
            self.output,
            keys.server_event_key(event["key"]),
            action,
            reason,
            decided=event["received"],
            unknown_values=event["unknownValues"],
        )

    def attribute(self, event, attribution_type, status, reason):
        decided = event["received"]
        attribution_fact(self.output, event, attribution_type, status=status, reason=reason, decided=decided)

    # ---------------------------------------------------------------- the rules

    def open(self, event):
        """F13: opened at its `receivedAt`, by its app (F23)."""
        closure = {
            "appId": event["appId"],
            "state": "open",
            "source": None,
            "deadline": event["received"] + TERMINAL_WAIT,
            "opener": event,
            "timeout": None,  # the attribution fact of a synthesised failure, with its record
            "pending": None,  # a click that waits for its impression: {"event", "deadline", "code"}
            "hasBillableClick": False,
        }
        self.table[event["closureKey"]] = closure
        return closure

    def impression(self, event, closure):
        if closure is None:
            closure = self.open(event)  # F13: opens and closes in one step

        # F15, §3.8.24.1.
        if closure["state"] == "closed_success":
            return self.refuse_at_closure(
                event, "attr_impression", "duplicate", "f_billing_conflict_duplicate_impression"
            )
        # §3.8.19.2, F17: over a real failure.
        if closure["state"] == "closed_failure" and closure["source"] != "system_timeout_synthesized":
            return self.refuse_at_closure(
                event, "attr_impression", "conflicted", "f_terminal_conflict_impression_after_failure"
            )
        # §3.8.19.2, F17: over a synthesised failure, whose record was or is committed and is now superseded.
        if closure["state"] == "closed_failure":
            fact, record = closure["timeout"]
            fact["recordStatus"] = "superseded"
            record["recordStatus"] = "superseded"
            record["decisionReasonCode"] = "f_terminal_timeout_superseded"  # F26: the code of its last move

        closure["state"] = "closed_success"
        closure["source"] = "impression"
        code = reason_accepted(event)
        self.emit(event, "both_emit", code)
        billable_fact(self.output, event, "billable_impression", reason=code, decided=event["received"])
        self.attribute(event, "attr_impression", "new", code)

        # F16: a click still pending is upgraded; the source of its facts is the click; a second audit (F20).
        pending = closure["pending"]
        if pending is not None:
            closure["pending"] = None
            self.bill_click(pending["event"], closure, pending["code"], event["received"])
        return "accepted", code

    def terminal_error(self, event, closure):
        """F14: `attr_failure_terminal`, not also `attr_error`."""
        if closure is None:
            closure = self.open(event)  # F13: opens and closes in one step
        if closure["state"] == "closed_success":
            # §3.8.19.1. CHOICE: the record is `duplicate`, as the ACK; F17 and F18 say so where they mean `conflicted`.
            return self.refuse_at_closure(
                event, "attr_failure_terminal", "duplicate", "f_terminal_conflict_failure_after_impression"
            )
        if closure["state"] == "closed_failure":
            # F14; also after a synthesised failure (§3.8.18), which stays the source of the terminal state.
            return self.refuse_at_closure(event, "attr_failure_terminal", "duplicate", "f_terminal_duplicate_failure")
        closure["state"] = "closed_failure"
        closure["source"] = "error"
        code = reason_accepted(event)
        self.emit(event, "attribution_emit", code)
        self.attribute(event, "attr_failure_terminal", "new", code)
        return "accepted", code

    def click(self, event, closure):
        if closure is None:
            closure = self.open(event)
        # F15, in any state. CHOICE: this comes before F16's rule for `closed_failure`, where a click may still be
        # pending from before the timeout.
        if closure["hasBillableClick"] or closure["pending"] is not None:
            return self.refuse_at_closure(event, "attr_click", "duplicate", "f_billing_conflict_duplicate_click")
        code = reason_accepted(event)
        if closure["state"] == "closed_success":
            self.bill_click(event, closure, code, event["received"])
        elif closure["state"] == "closed_failure":
            # F16, §3.8.24.3: attribution only, and the audit has a reason of its own.
            reason = "f_billing_ineligible_terminal_failure"
            self.emit(event, "attribution_emit", reason)
            self.attribute(event, "attr_click", "new", reason)
        else:
            # F16, §3.8.24.2.
            self.emit(event, "attribution_emit", code)
            self.attribute(event, "attr_click_pending", "new", code)
            closure["pending"] = {"event": event, "deadline": event["received"] + TERMINAL_WAIT, "code": code}
        return "accepted", code

    def bill_click(self, click, closure, code, decided):
        """F16: `billable_click` + `attr_click`, source = the click."""
        closure["hasBillableClick"] = True
        audit(
            self.output,
            keys.server_event_key(click["key"]),
            "both_emit",
            code,
            decided=decided,
            unknown_values=click["unknownValues"],
        )
        billable_fact(self.output, click, "billable_click", reason=code, decided=decided)
        attribution_fact(self.output, click, "attr_click", status="new", reason=code, decided=decided)

    def postback(self, event, closure):
        """§3.8.24.4, F18. A postback is not a render signal and opens nothing (F13)."""
        code = reason_accepted(event)
        state = None if closure is None else closure["state"]
        if (event["postbackStatus"], state) in (("success", "closed_failure"), ("failed", "closed_success")):
            reason = "f_postback_terminal_conflict"
            self.emit(event, "attribution_emit", reason)
            self.attribute(event, "attr_postback", "conflicted", reason)
        else:
            self.emit(event, "attribution_emit", code)
            self.attribute(event, "attr_postback", "new", code)
        return "accepted", code

    def plain(self, event, closure):
        """The rest of §3.8.22; F13 for those that open a closure."""
        if closure is None and event["closureKey"] is not None and event["eventType"] in OPENERS:
            self.open(event)
        code = reason_accepted(event)
        self.emit(event, "attribution_emit", code)
        self.attribute(event, PLAIN_ATTRIBUTION[event["eventType"]], "new", code)
        return "accepted", code

    def refuse_at_closure(self, event, attribution_type, status, code):
        """F20: duplicates and conflicts of F14, F15, F17 are `attribution_emit`, and their record keeps the status."""
        self.emit(event, "attribution_emit", code)
        self.attribute(event, attribution_type, status, code)
        return "duplicate", code

    # ---------------------------------------------------------------- deadlines

    def apply_deadlines(self, now, only=...):
        """A1: everything that fell due at or before `now`, as of its deadline, in the order of the deadlines.

        F24: an event applies only what falls due on its own closure.
        """
        due = []
        for key, closure in self.table.items():
            if only is not ... and key != only:
                continue
            if closure["state"] == "open" and closure["deadline"] <= now:
                due.append((closure["deadline"], key, "timeout"))
            if closure["pending"] is not None and closure["pending"]["deadline"] <= now:
                due.append((closure["pending"]["deadline"], key, "click"))
        for _, key, what in sorted(due):
            if what == "timeout":
                self.time_out(self.table[key])
            else:
                self.give_up_on_click(self.table[key])

    def time_out(self, closure):
        """§3.8.18, F13: the synthesised `failure`, with the keys of the event that opened the closure."""
        opener = closure["opener"]
        deadline = closure["deadline"]
        failure = {
            **opener,
            "eventType": "failure",
            "eventId": None,
            "at": deadline,  # F7: `factAt` of a synthesised failure
            "key": keys.timeout_dedup_key(opener),
        }
        reason = "f_terminal_timeout_autofill"
        closure["state"] = "closed_failure"
        closure["source"] = "system_timeout_synthesized"
        audit(self.output, keys.server_event_key(failure["key"]), "attribution_emit", reason, decided=deadline)
        fact = attribution_fact(
            self.output, failure, "attr_failure_terminal", status="new", reason=reason, decided=deadline
        )
        closure["timeout"] = (fact, self.output.records[-1])

    def give_up_on_click(self, closure):
        """F16: an audit as of the deadline. CHOICE: `attr_click_pending` stays and no other fact is added."""
        pending = closure["pending"]
        closure["pending"] = None
        audit(
            self.output,
            keys.server_event_key(pending["event"]["key"]),
            "attribution_emit",
            "f_billing_click_without_impression",
            decided=pending["deadline"],
        )


def reason_accepted(event):
    """F8."""
    if event["isKeyIgnored"]:
        return "f_idempotency_key_invalid_fallback"
    if event["unknownValues"]:
        return "f_accepted_unknown_enum"
    return "f_accepted"
