"""Only public addresses are called, and private ones that are named."""

import socket
import threading

import pytest
import urllib3

from patra.kernel.safety.egress import AddressRefusedError, guarded_pool, pool_for
from patra.kernel.safety.networks import is_reachable, networks_named_by, networks_of


@pytest.mark.parametrize(
    ("address", "reachable"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),  # NAT64 and 6to4 of 127.0.0.1
        ("2002:7f00:1::", False),
        ("64:ff9b::5db8:d822", True),  # and of 93.184.216.34
        ("2002:5db8:d822::1", True),
        ("64:ff9b:1::5db8:d822", False),
        ("fec0::1", False),
        ("::ffff:0:127.0.0.1", False),
        ("5f00::1", False),
    ],
)
def test_only_public_addresses_are_reachable(address: str, reachable: bool) -> None:
    assert is_reachable(address, ()) is reachable
    assert is_reachable(address, networks_of(["0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_private_address_is_called_only_where_it_is_named(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://{host}:{server.getsockname()[1]}/"
        with pytest.raises(AddressRefusedError):
            guarded_pool((), retries=False).request("GET", url)

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        pool = guarded_pool(networks_of(["127.0.0.0/8", "::1"]), retries=False, timeout=urllib3.Timeout(total=30))
        assert pool.request("GET", url).status == 204
        thread.join(30)


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("127.0.0.1", ["127.0.0.1"]),
        ("[::1]", ["::1"]),
        ("localhost", ["127.0.0.0/8", "::1"]),
        ("archive.internal", []),
        ("127.1", []),
        ("10.0.0.0/8", ["10.0.0.0/8"]),
    ],
)
def test_an_address_in_a_setting_names_itself_and_a_name_names_nothing(host: str, named: list[str]) -> None:
    assert networks_named_by(host) == networks_of(named)


def test_the_url_of_a_setting_reaches_the_address_that_it_names_and_no_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(AddressRefusedError):  # a name to us, and an address to the resolver
            pool_for(f"http://127.1:{port}/", (), retries=False).request("GET", f"http://127.1:{port}/")
        named = pool_for(f"http://127.0.0.1:{port}/", (), retries=False, timeout=urllib3.Timeout(read=0.01))
        with pytest.raises(urllib3.exceptions.ReadTimeoutError):
            named.request("GET", f"http://127.0.0.1:{port}/")
