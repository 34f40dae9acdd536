"""Turns the settings into the networks that calls of our own may reach beside public addresses."""

from patra.app.configuration.settings import Settings
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.networks import Network, networks_of


def networks(settings: Settings) -> tuple[Network, ...]:
    """Those of `egress.networks`. Raises ConfigInvalid where one is none."""
    return _read(settings.egress.networks, "egress.networks")


def webhook_networks(settings: Settings) -> tuple[Network, ...]:
    """Those, and the ones for webhooks alone."""
    return (*networks(settings), *_read(settings.bus.webhook_networks, "bus.webhook_networks"))


def _read(texts: tuple[str, ...], place: str) -> tuple[Network, ...]:
    try:
        return networks_of(texts)
    except ValueError as error:
        advice = "write an address or a network: 10.0.0.7, 10.0.0.0/24"
        raise ConfigInvalid("config_wrong_value", str(error), place=place, advice=advice) from error
