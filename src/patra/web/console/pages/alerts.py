"""What fires, since when, who knows about it, and what is silent until when."""

from typing import Any

from patra.web.console.markup.formats import number_text, plural
from patra.web.console.needs.alert_places import place_of
from patra.web.console.view import Page, Route, View

STATES = (("", "All"), ("FIRING", "Firing"), ("PENDING", "Pending"), ("OVER", "Over"), ("silenced", "Silent"))


def alerts(view: View) -> Page:
    state = view.filter_value("state")
    found: list[dict[str, Any]] = view.ask("/ingest/alerts")["alerts"]
    shown = [alert for alert in found if _is_asked(alert, state)]
    shown = [alert | {"place": place_of(alert["alert"], alert["subject"])} for alert in shown]
    return Page(title=_title(found), template="alerts.html", values={"alerts": shown, "state": state, "states": STATES})


def _is_asked(alert: dict[str, Any], state: str) -> bool:
    if state == "silenced":
        return alert["silenced"] is not None
    return not state or alert["state"] == state


def _title(found: list[dict[str, Any]]) -> str:
    firing = [alert for alert in found if alert["state"] == "FIRING"]
    if not firing:
        pending = sum(1 for alert in found if alert["state"] == "PENDING")
        return f"No alert fires; {number_text(pending)} may soon" if pending else "No alert fires"
    known = sum(1 for alert in firing if alert["acknowledged"] or alert["silenced"])
    fires = plural(len(firing), "alert fires", "alerts fire")
    if not known:
        return fires
    return f"{fires}; {'all' if known == len(firing) else known} acknowledged or silenced"


ROUTES = (Route(path="/alerts", handler=alerts, nav="/alerts"),)
