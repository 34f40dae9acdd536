"""Networks that a setting names, and whether an address is public or within one of them."""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
NAT64 = IPv6Network("64:ff9b::/96")
LOCAL_IPV6 = tuple(IPv6Network(text) for text in ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "5f00::/16"))
"""NAT64 within a site (RFC 8215), IPv4-compatible and IPv4-translated addresses, segment routing (RFC 9602).

`ipaddress` takes them for global."""


def networks_of(texts: Sequence[str]) -> tuple[Network, ...]:
    """Networks by their text; raises ValueError for what is none."""
    return tuple(ip_network(text) for text in texts)


def is_reachable(address: str, allowed: Sequence[Network]) -> bool:
    """Whether an address is public, or within a network that is allowed by name."""
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in network for network in allowed):
        return True
    if isinstance(found, IPv6Address):
        if found.is_site_local or any(found in network for network in LOCAL_IPV6):
            return False
        if (inside := _ipv4_inside(found)) is not None:
            return is_reachable(str(inside), allowed)
    return found.is_global and not found.is_multicast


def _ipv4_inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator or a tunnel would send this one to (NAT64, 6to4)."""
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour


def networks_named_by(host: str) -> tuple[Network, ...]:
    """What a setting names that holds this host: an address names itself, `localhost` this machine, a name nothing."""
    if host.lower() == "localhost":
        return networks_of(["127.0.0.0/8", "::1"])
    try:
        return (ip_network(host.removeprefix("[").removesuffix("]")),)
    except ValueError:
        return ()


def private_address(host: str, allowed: Sequence[Network]) -> str | None:
    """The address that a host names itself, in whatever notation, where it may not be reached; nothing is resolved.

    A name but `localhost` gives None: where it leads is known, and checked, when it is connected to.
    """
    plain = host.removeprefix("[").removesuffix("]").rstrip(".")
    if plain.lower() == "localhost" or plain.lower().endswith(".localhost"):
        return None if is_reachable("127.0.0.1", allowed) else "127.0.0.1"
    try:
        found = socket.getaddrinfo(plain, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return None
    return next((str(where[0]) for *_, where in found if not is_reachable(str(where[0]), allowed)), None)
