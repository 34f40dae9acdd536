"""Serves an application on an address with uvicorn, in this thread, until it is asked to stop."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import ConfigInvalid
from patra.web.asgi import App
from patra.web.auth import check_address
from patra.web.protocol import ConnectionLimits, bound_protocol

BACKLOG = 2048


class Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: who runs the process decides when to stop."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Serving:
    """A bound address and the application behind it."""

    def __init__(self, app: App, listener: socket.socket, *, finish_seconds: float) -> None:
        web = app.settings
        self.app = app
        self.url = url_of(listener)
        self._listener = listener
        self._server = Server(
            uvicorn.Config(
                app,
                http=bound_protocol(connection_limits(web), app.gate.exposure.trusts),
                timeout_keep_alive=max(1, round(web.idle_seconds)),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=max(1, round(finish_seconds)),
            )
        )

    def run(self) -> None:
        """Serve until `stop`, then finish the running requests within the bound."""
        self.app.begin()
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self.app.close()

    def stop(self) -> None:
        """Take no more connections. Safe in a signal handler: it sets a flag."""
        self.app.end_streams()
        self._server.should_exit = True


def listen(settings: WebSettings) -> socket.socket:
    """Bind the address of the settings; refuse one that is open to other machines without an admin token."""
    check_address(settings)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise ConfigInvalid(
            "config_address_unusable",
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}",
            place="web.host, web.port",
            advice="stop what uses the port, or choose another with --port (0 takes a free one)",
        ) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it: a lost peer is noticed
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def connection_limits(web: WebSettings) -> ConnectionLimits:
    return ConnectionLimits(
        header_bytes=web.max_header_bytes,
        header_count=web.max_headers,
        header_seconds=web.header_seconds,
        idle_seconds=web.idle_seconds,
        write_seconds=web.request_seconds,
        connections=web.max_connections,
        per_address=web.max_connections_per_address,
    )


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def serving(app: App, settings: WebSettings) -> Generator[Serving]:
    """Serve in a thread of its own while the block runs: how tests and embedding programs do it."""
    served = Serving(app, listen(settings), finish_seconds=settings.shutdown_seconds)
    thread = threading.Thread(target=served.run, name="web server", daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.stop()
        thread.join()
