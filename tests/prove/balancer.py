"""A balancer before several servers, as nginx or HAProxy are: it asks each for its health, and sends nobody to one that is down."""

import itertools
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

import urllib3

CHECK_SECONDS = 0.5
HEALTH_TIMEOUT_SECONDS = 2.0


class Balancer:
    """Takes turns between servers of this machine; connections to one that goes down are cut."""

    def __init__(self, ports: Sequence[int], path: str = "/ready") -> None:
        self._path = path
        self._up = dict.fromkeys(ports, False)
        self._turns = itertools.count()
        self._pairs: dict[int, list[tuple[socket.socket, socket.socket]]] = {port: [] for port in ports}
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        for port in ports:
            threading.Thread(target=self._watch, args=(port,), daemon=True).start()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def up(self) -> list[int]:
        return [port for port, is_up in self._up.items() if is_up]

    def close(self) -> None:
        self._over.set()
        self._server.close()
        for port in self._pairs:
            self._cut(port)

    def _watch(self, port: int) -> None:
        url = f"http://127.0.0.1:{port}{self._path}"
        while not self._over.is_set():
            healthy = False
            with suppress(urllib3.exceptions.HTTPError, OSError):
                healthy = urllib3.request("GET", url, retries=False, timeout=HEALTH_TIMEOUT_SECONDS).status == 200
            was, self._up[port] = self._up[port], healthy
            if was and not healthy:
                self._cut(port)
            self._over.wait(CHECK_SECONDS)

    def _accept(self) -> None:
        while not self._over.is_set():
            with suppress(OSError):
                near = self._server.accept()[0]
                if not self._connect(near):
                    near.close()

    def _connect(self, near: socket.socket) -> bool:
        ports = self.up
        first = next(self._turns)
        for turn in range(len(ports)):
            port = ports[(first + turn) % len(ports)]
            try:
                far = socket.create_connection(("127.0.0.1", port), 2)
            except OSError:
                continue
            far.settimeout(None)
            self._pairs[port].append((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_carry, args=(one, other), daemon=True).start()
            return True
        return False

    def _cut(self, port: int) -> None:
        pairs, self._pairs[port] = self._pairs[port], []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
