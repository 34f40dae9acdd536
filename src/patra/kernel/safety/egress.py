"""Connections to public addresses only, and to private ones that the installation names.

The name is resolved once, every address is checked, and the one that was checked is connected to: a name that leads
elsewhere a moment later (DNS rebinding) leads nowhere. Webhooks, alerts, archives, model servers and providers of
literature are called this way.
"""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import parse_url

from patra.kernel.safety.networks import Network, is_reachable, networks_named_by


class AddressRefusedError(NewConnectionError):
    """The name leads to an address that is not public and that no setting names."""


def connect_checked(host: str, port: int, allowed: Sequence[Network], timeout: float | None) -> socket.socket:
    """A connection to the first address of a name that answers; none of them is asked for twice, all are checked."""
    addresses = checked_addresses(host, port, allowed)
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout)
    return socket.create_connection((addresses[-1], port), timeout)


def checked_addresses(host: str, port: int, allowed: Sequence[Network]) -> list[str]:
    """The addresses of a name; raises PermissionError where any of them may not be reached."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(where[0]) for *_, where in found]
    if refused := [address for address in addresses if not is_reachable(address, allowed)]:
        raise PermissionError(f"{refused[0]} is not a public address")
    return list(dict.fromkeys(addresses))


def pool_for(url: str, allowed: Sequence[Network], **options: Any) -> urllib3.PoolManager:
    """A pool for the URL of a setting: beside the allowed networks it reaches the address that the URL itself names."""
    host = parse_url(url).host or ""
    return guarded_pool((*allowed, *networks_named_by(host)), **options)


def guarded_pool(allowed: Sequence[Network], **options: Any) -> urllib3.PoolManager:
    """A pool of urllib3 whose connections go to such addresses only."""
    pool = urllib3.PoolManager(**options)
    guard(pool, allowed)
    return pool


def guard(pool: urllib3.PoolManager, allowed: Sequence[Network], *, literals: bool = False) -> None:
    """Let connections of a pool go to such addresses only; with `literals`, also to one that a URL itself names."""

    def connect(connection: HTTPConnection) -> socket.socket:
        named = networks_named_by(connection.host) if literals else ()
        try:
            timeout = connection.timeout if isinstance(connection.timeout, int | float) else None
            made = connect_checked(connection.host, connection.port, (*allowed, *named), timeout)
        except socket.gaierror as error:
            raise NameResolutionError(connection.host, connection, error) from error
        except PermissionError as error:
            raise AddressRefusedError(connection, str(error)) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(connection, f"no connection within {connection.timeout} s") from error
        except OSError as error:
            raise NewConnectionError(connection, f"no connection: {error}") from error
        for option in connection.socket_options or ():
            made.setsockopt(*option)
        return made

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return connect(self)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return connect(self)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls: Any = Plain  # urllib3's protocol of it is stricter than its own classes

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls: Any = Secure

    classes: dict[str, type[HTTPConnectionPool | HTTPSConnectionPool]] = {"http": PlainPool, "https": SecurePool}
    pool.pool_classes_by_scheme = classes
