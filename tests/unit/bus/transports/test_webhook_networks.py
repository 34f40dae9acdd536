"""A webhook on a private address is called only where the installation names its network."""

import socket

import pytest

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.consumer import EndpointFailed
from patra.bus.transports import webhook
from patra.kernel.clock import SystemClock
from patra.kernel.safety.networks import networks_of


def test_a_webhook_on_this_machine_is_not_called_unless_its_network_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(EndpointFailed) as caught:
            webhook.post(SystemClock(), networks=())(url, {}, b"{}")
        assert caught.value.code == Reason.WEBHOOK_UNREACHABLE
        assert "AddressRefusedError" in caught.value.detail
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has come
            server.accept()
        with pytest.raises(EndpointFailed) as caught:
            webhook.post(SystemClock(), 0.05, networks=networks_of(["127.0.0.1"]))(url, {}, b"{}")
        server.accept()[0].close()  # a client has
