"""Who can reach the HTTP interface, and what is open to them: decided from the settings alone.

What is or is not registered plays no part in it.

Patra is *open* only while all of this holds: no token is configured or required (`web.tokens_required`), the address
is a loopback address, and neither `web.public_url` nor `web.trusted_proxies` says that a proxy stands in front. Then
every program on this machine is admin. In every other case nothing is open: the API asks for tokens, `POST /events`
for app keys.
"""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

import msgspec

from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.http_url import UrlInvalidError, parse_http_url

Network: TypeAlias = IPv4Network | IPv6Network


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """Whether anyone is let in, and the names and addresses that requests may come by."""

    open: bool
    tokens: int
    names: frozenset[str]  # hosts that a Host header may name, beside loopback names and the address that was reached
    origin: str  # of the public URL, as browsers write it; empty: none
    proxies: tuple[Network, ...]

    @property
    def api(self) -> str:
        """To whom the API is open, in words."""
        if self.open:
            return "every program on this machine, as admin"
        return f"holders of tokens ({self.tokens} in the settings, and those that the store keeps)"

    @property
    def intake(self) -> str:
        """To whom `POST /events` is open, in words."""
        if self.open:
            return "every program on this machine until an app is registered, then holders of app keys"
        return "holders of app keys"

    @property
    def shown_names(self) -> list[str]:
        """The names that a Host header may carry, for people."""
        return ["loopback names", *([] if self.open else ["the address itself"]), *sorted(self.names)]

    def trusts(self, address: str) -> bool:
        """Whether this is the address of a proxy whose `X-Forwarded-For` is believed."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None  # as a socket of IPv6 shows IPv4
        return any((mapped or found) in network for network in self.proxies)

    def client(self, peer: str, forwarded_for: str) -> str:
        """The address of the client: of the peer, or the last one in `X-Forwarded-For` that is not a trusted proxy."""
        address = peer
        for hop in reversed(forwarded_for.split(",") if forwarded_for else []):
            if not self.trusts(address):
                return address
            address = hop.strip()
        return address


def exposure(settings: WebSettings) -> Exposure:
    """What the settings open to whom; a malformed one is refused."""
    given = (settings.viewer_tokens, settings.operator_tokens, settings.publisher_tokens, settings.admin_tokens)
    tokens = sum(len(entries) for entries in given)
    proxies = tuple(_network(text, f"web.trusted_proxies[{n}]") for n, text in enumerate(settings.trusted_proxies))
    origin, public_name = _public(settings.public_url) if settings.public_url else ("", "")
    names = {plain_host(name) for name in (public_name, *settings.allowed_hosts) if name}
    alone = is_loopback(settings.host) and not settings.public_url and not proxies
    if not is_loopback(settings.host):
        names.add(plain_host(settings.host))
    return Exposure(
        open=alone and not tokens and not settings.tokens_required,
        tokens=tokens,
        names=frozenset(names),
        origin=origin,
        proxies=proxies,
    )


def check_exposure(settings: WebSettings) -> Exposure:
    """The exposure; refused while others could reach Patra and no admin token is configured."""
    found = exposure(settings)
    if settings.admin_tokens or settings.tokens_required:
        return found
    advice = "make one with `patra token new admin` and set web.admin_tokens, or listen on 127.0.0.1"
    if not is_loopback(settings.host):
        detail = f"{settings.host} is reachable from other machines, and no admin token is configured"
        raise ConfigInvalid("config_bind_needs_token", detail, place="web.host", advice=advice)
    if settings.public_url or settings.trusted_proxies:
        place = "web.public_url" if settings.public_url else "web.trusted_proxies"
        detail = "others reach Patra through a proxy, and no admin token is configured"
        raise ConfigInvalid("config_bind_needs_token", detail, place=place, advice=advice)
    return found


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    if plain_host(host) == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def plain_host(host: str) -> str:
    return host.lower().rstrip(".")


def _public(text: str) -> tuple[str, str]:
    """The origin and the host of the public URL."""
    try:
        url = parse_http_url(text)
        if url.path not in {"", "/"} or url.query is not None or "#" in text:
            raise UrlInvalidError("more than scheme and host")  # noqa: TRY301  one refusal for all that is wrong
    except UrlInvalidError as error:
        raise ConfigInvalid(
            "config_public_url",
            f"it is not a URL of the form https://host or https://host:port: {error}",
            place="web.public_url",
            advice="give scheme and host only: Patra is served at the root of its host",
        ) from error
    scheme, host, port = url.origin
    shown = "" if port == {"http": 80, "https": 443}[scheme] else f":{port}"
    return f"{scheme}://{host}{shown}", host.strip("[]")


def _network(text: str, place: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ConfigInvalid(
            "config_trusted_proxy",
            str(error),
            place=place,
            advice="write an address or a network: 10.0.0.7, 10.0.0.0/24",
        ) from error
