"""The plan of a chapter with all that is understood of it drawn, however uncertain."""

from patra.studio.script.plan import Plan, make_plan


def understood(text: str, language: str = "") -> Plan:
    return make_plan(text, language, least=0.0)
