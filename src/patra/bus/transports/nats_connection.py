"""Turns the addresses of a NATS cluster into a connection for threads. The protocol is that of `nats-py`.

`nats-py` lives in an event loop: one thread of its own runs it for all connections of a transport. A connection that
was lost is opened again by its next user, with the configured servers and those that the cluster announced.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import msgspec

from patra.kernel.errors import ConfigInvalid, Transient
from patra.kernel.safety.threads import start_thread

T = TypeVar("T")
RETRY_PAUSE_SECONDS = 0.05
CLOSE_SECONDS = 5.0
_PLAIN = "the address says tls://, and the server does not encrypt"


class ConnectionLost(Exception):  # noqa: N818  what happened, not what was wrong
    """The connection cannot be made, was lost, or the server refused; it is closed."""


PUBLISHED_BY = "Patra-Published-By"


class Message(msgspec.Struct, frozen=True, gc=False):
    """What arrived: its reply subject, and a `status` where it is from the server itself."""

    reply: str
    status: str | None
    data: bytes
    by: str = ""  # who published it (B7)


class Post(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is published to JetStream under an id of its own."""

    subject: str
    data: bytes
    key: str
    stream: str
    by: str = ""  # who published it


class Login(msgspec.Struct, frozen=True):
    """Where the servers are, and who we are: a name and password, a token, a credentials file's text, or an nkey."""

    servers: tuple[str, ...]
    user: str | None
    password: str | None
    credentials: str

    @property
    def secure(self) -> bool:
        return any(server.startswith("tls://") for server in self.servers)


def login(url: str, credentials: str = "") -> Login:
    """URLs with commas between them; a name without a password is a token."""
    user = password = None
    servers: list[str] = []
    for one in url.split(","):
        parts = urlsplit(one if "://" in one else f"nats://{one}")
        if parts.username is not None and user is None:
            user, password = parts.username, parts.password
        servers.append(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "", "", "")))
    return Login(tuple(servers), user and unquote(user), password and unquote(password), credentials.strip())


class EventLoop:
    """The thread in which `nats-py` lives; it starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._closed:
                work.close()
                raise ConnectionLost("this end was closed")
            loop = self._begin_loop(work)
            running = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return running.result()
        except CancelledError as error:
            raise ConnectionLost("this end was closed") from error

    def _begin_loop(self, work: Coroutine[Any, Any, T]) -> asyncio.AbstractEventLoop:
        if self._loop is not None:
            return self._loop
        loop = asyncio.new_event_loop()
        try:
            self._thread = start_thread(None, partial(_serve, loop), "nats")
        except Transient as error:
            loop.close()
            work.close()
            raise ConnectionLost(error.detail) from error
        self._loop = loop
        return loop

    def close(self) -> None:
        """Callers that still wait get ConnectionLost. Calling it twice does no harm."""
        with self._lock:
            if self._loop is not None and not self._closed:
                asyncio.run_coroutine_threadsafe(_end(), self._loop)
            self._closed = True
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end() -> None:
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop.stop()


class NatsConnection:
    """One connection, and what arrives on its one subscription. `close` may be called by any thread."""

    def __init__(self, loop: EventLoop, who: Login, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._arrived: SimpleQueue[Message | None] = SimpleQueue()
        self._subscription: Any = None
        self._last_error = ""
        self.closed = False
        self._client: Any = loop.run(self._connect(who))

    @property
    def servers(self) -> tuple[str, ...]:
        """The configured servers and those that the cluster has announced since."""
        return tuple(one.uri.geturl() for one in self._client.server_pool)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._arrived.put(None)
            with suppress(Exception):
                self._loop.run(asyncio.wait_for(self._client.close(), self._seconds))

    def request(self, subject: str, data: bytes = b"") -> Message:
        """The answer to a question; the status is 503 where no subscriber."""
        return self._run(lambda: self._request(subject, data))

    def publish(self, posts: Sequence[Post]) -> list[bool]:
        """Which of them JetStream confirmed in time."""

        async def publish() -> list[Any]:
            stream = self._client.jetstream(timeout=self._seconds)
            return await asyncio.gather(*(_publish(stream, one) for one in posts), return_exceptions=True)

        answers = self._run(publish)
        if any(isinstance(answer, TimeoutError) for answer in answers):
            self.close()  # a server that does not answer gets a new connection
        return [not isinstance(answer, BaseException) for answer in answers]

    def subscribe(self, subject: str) -> None:
        """Listen to this subject from now on, and to no other."""

        async def take_message(message: Any) -> None:
            queue.put(_message(message))

        async def subscribe() -> Any:
            if self._subscription is not None:
                await self._subscription.unsubscribe()
            return await self._client.subscribe(subject, cb=take_message, pending_bytes_limit=-1, pending_msgs_limit=-1)

        queue = self._arrived = SimpleQueue()
        self._subscription = self._run(subscribe)

    def post(self, subject: str, data: bytes, reply: str) -> None:
        """Send a command; the answers arrive in `receive`."""
        self._run(lambda: self._client.publish(subject, data, reply=reply))

    def receive(self, seconds: float) -> Message | None:
        """The next message of the subscription, if there is one in time."""
        if self.closed:
            raise ConnectionLost(self._last_error or "the connection was closed")
        try:
            message = self._arrived.get(timeout=seconds) if seconds > 0 else self._arrived.get_nowait()
        except Empty:
            return None
        if message is None:
            raise ConnectionLost(self._last_error or "the connection was closed")
        return message

    async def _request(self, subject: str, data: bytes) -> Message:
        from nats.errors import NoRespondersError  # noqa: PLC0415  an extra

        try:
            return _message(await self._client.request(subject, data, timeout=self._seconds))
        except NoRespondersError:
            return Message("", "503", b"")

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def run() -> T:
            return await work()

        if self.closed:
            raise ConnectionLost(self._last_error or "the connection was closed")
        try:
            return self._loop.run(run())
        except Exception as error:
            self.close()
            raise ConnectionLost(f"{type(error).__name__} {error}") from error

    async def _connect(self, who: Login) -> Any:
        from nats.aio.client import Client, RawCredentials  # noqa: PLC0415  an extra

        client: Any = Client()

        async def note_error(error: Exception) -> None:
            self._last_error = f"{type(error).__name__} {error}"

        async def note_loss() -> None:
            self.closed = True
            self._arrived.put(None)

        options: dict[str, Any] = {}
        if who.credentials:
            whole = "BEGIN NATS USER JWT" in who.credentials
            options = (
                {"user_credentials": RawCredentials(who.credentials + "\n")}
                if whole
                else {"nkeys_seed_str": who.credentials}
            )
        elif who.user is not None:
            known = {"user": who.user, "password": who.password} if who.password is not None else {"token": who.user}
            options = {name: _guarded_secret(client, who, value) for name, value in known.items()}
        try:
            await client.connect(
                list(who.servers),
                name="patra",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=RETRY_PAUSE_SECONDS,
                connect_timeout=self._seconds,
                error_cb=note_error,
                disconnected_cb=note_loss,
                closed_cb=note_loss,
                **options,
            )
        except Exception as error:
            self.closed = True
            with suppress(Exception):  # the client leaves the socket of an attempt that failed open
                client._transport.close()  # noqa: SLF001  its `close` waits for the other end
            raise ConnectionLost(self._last_error or f"{type(error).__name__} {error}") from error
        if who.secure and not _encrypts(client):
            self.closed = True
            await client.close()
            raise ConnectionLost(_PLAIN)
        return client


def _guarded_secret(client: Any, who: Login, secret: str) -> Callable[[], str]:
    """A name or password that is said only where the address is `nats://`, or the server encrypts."""

    def say() -> str:
        if who.secure and not _encrypts(client):
            raise ConnectionLost(_PLAIN)
        return secret

    return say


def _encrypts(client: Any) -> bool:
    return bool(client._server_info.get("tls_required"))  # noqa: SLF001  the client offers no other way


async def _publish(stream: Any, post: Post) -> None:
    headers = {"Nats-Msg-Id": post.key}
    if post.by:
        headers[PUBLISHED_BY] = quote(post.by)  # a header is one line of ASCII
    await stream.publish(post.subject, post.data, stream=post.stream, headers=headers)


def _message(message: Any) -> Message:
    headers: dict[str, str] = message.headers or {}
    return Message(message.reply, headers.get("Status"), message.data, unquote(headers.get(PUBLISHED_BY, "")))


def check_installed() -> None:
    """Raises ConfigInvalid where the extra is not installed."""
    try:
        import nats  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigInvalid(
            "config_wrong_value",
            "the package nats-py is missing",
            place="bus.nats_url",
            advice="pip install 'patra[nats]'",
        ) from error
