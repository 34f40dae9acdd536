"""Name the servers in the settings that Patra may not call, since they are at private addresses.

An address in a URL of the settings names itself; a name does not, since the owner of the name decides where it leads.
A name that cannot be resolved now is not an error: every call to it is checked again when it is made.
"""

import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from patra.app.configuration.egress_networks import networks
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import Settings
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.egress import checked_addresses
from patra.kernel.safety.networks import Network, networks_named_by, networks_of

RESOLVE_SECONDS = 3.0
"""How long all names together may take to be resolved."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server that a setting names."""

    place: str
    host: str
    port: int
    networks: tuple[Network, ...]


def targets(settings: Settings) -> list[Target]:
    """The archive, the receivers of alerts and the model servers of an installation."""
    allowed = networks(settings)
    found: list[Target] = []
    if settings.attribution.archive.startswith(("http://", "https://")):
        found.append(_target("attribution.archive", settings.attribution.archive, allowed))
    alerts = settings.alerts
    if alerts.webhook_url:
        found.append(_target("alerts.webhook_url", resolve(alerts.webhook_url, "alerts.webhook_url"), allowed))
    if alerts.email_to:
        found.append(_target("alerts.smtp_host", f"smtp://{alerts.smtp_host}:{alerts.smtp_port}", allowed))
    if settings.studio.profiles:
        from patra.studio.profiles import load_profiles  # noqa: PLC0415  only where there are model servers

        for name, profile in load_profiles(settings.studio.profiles, settings.egress.networks).items():
            if profile.url:
                found.append(_target(f"studio.profiles: {name}", profile.url, networks_of(profile.networks)))
    return found


def refused_targets(
    found: Sequence[Target],
    lookup: Callable[[str, int, Sequence[Network]], object] = checked_addresses,
    seconds: float = RESOLVE_SECONDS,
) -> list[ConfigInvalid]:
    """What may not be called, each with what to do; names that do not resolve in time are left out."""
    problems: dict[str, ConfigInvalid] = {}

    def look(target: Target) -> None:
        try:
            lookup(target.host, target.port, target.networks)
        except PermissionError as error:
            problems[target.place] = refusal(target.place, target.host, error)
        except (OSError, UnicodeError):
            return

    threads = [threading.Thread(target=look, args=(target,), daemon=True) for target in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    return [problems[target.place] for target in found if target.place in problems]


def refusal(place: str, host: str, error: PermissionError) -> ConfigInvalid:
    """Why a server is not called."""
    address = str(error).partition(" ")[0]
    return ConfigInvalid(
        "config_egress_refused",
        f"{host} leads to {error}, and no setting allows it",
        place=place,
        advice=f'if that is your own server, set egress.networks = ["{address}"] or a network that holds it',
    )


def _target(place: str, url: str, allowed: Sequence[Network]) -> Target:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    return Target(place=place, host=host, port=port, networks=(*allowed, *networks_named_by(host)))
