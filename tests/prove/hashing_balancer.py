"""Two APIs behind nginx with the configuration of deploy/nginx: a client stays with one API, moves when it is killed, and comes back.

Clients of both languages send through TLS all the while. In the end every event is answered, is billed once, and `patra verify`
finds nothing. Needs nginx (Debian: nginx-light).
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import urllib3

from patra.app.wiring import packages
from patra.attribution.app_keys import add_key
from patra.client import ROUTE_HEADER, Answer, Client
from patra.kernel.db import migrate, open_database
from tests import services
from tests.certificates import Certificate, certificate
from tests.contract.attribution.test_http import fresh_event
from tests.e2e.clients.test_javascript import lines, node
from tests.e2e.process import PATRA, environment, patra
from tests.prove.chaos_faults import until

SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx" / "patra.conf"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""
APPS = ("python", "node")
PYTHON_CLIENTS, NODE_CLIENTS = 10, 2
BATCH_EVENTS, NODE_EVENTS = 10, 500
BATCHES_SEEN = 3
TOKEN = "a-token-of-the-proof-that-nobody-else-has"
MAIN = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {user} worker_processes 1;
events {{ }}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  log_format proof '$request_uri $http_patra_route $status $upstream_addr';
  access_log {folder}/access.log proof;
  include {folder}/patra.conf;
}}
"""


class Nginx:
    """A running nginx, and which API answered which client."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self._log = folder / "access.log"

    def batches(self) -> list[tuple[str, int]]:
        """The route of each batch that was acknowledged, and the port of the API that did it, in their order."""
        found = [line.split(maxsplit=3) for line in self._log.read_text().splitlines()]
        return [
            (route, int(tried.rpartition(":")[2]))
            for path, route, status, tried in found
            if path == "/events" and status == "200"
        ]


@contextmanager
def nginx(folder: Path, apis: list[int], tls: Certificate) -> Generator[Nginx]:
    """The shipped configuration with other addresses, on a port of its own."""
    folder.mkdir()
    port = services.free_port()
    text = SHIPPED.read_text()
    for shipped, own in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "10.0.0.1:8642": f"127.0.0.1:{apis[0]}",
        "10.0.0.2:8642": f"127.0.0.1:{apis[1]}",
        "/etc/nginx/patra.crt": tls.certificate,
        "/etc/nginx/patra.key": tls.key,
    }.items():
        assert shipped in text
        text = text.replace(shipped, own)
    (folder / "patra.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    with subprocess.Popen(command) as process:
        try:
            until((folder / "nginx.pid").exists, "nginx")
            yield Nginx(folder, port)
        finally:
            process.terminate()


class Api:
    """`patra web` on a port that it keeps."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder, self._settings = folder, settings
        self.port = services.free_port()
        self.start()

    def start(self) -> None:
        command = [*PATRA, "web", "--port", str(self.port)]
        with (self._folder / f"{self.port}.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self._folder, env=environment(**self._settings), stderr=log)
        until(self._is_ready, f"the API on port {self.port}")

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/ready"
            return urllib3.request("GET", url, retries=False, timeout=10).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Sender(threading.Thread):
    """A client for Python that sends batch after batch."""

    def __init__(self, name: str, url: str, key: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.sent: list[str] = []
        self.answers: list[Answer] = []
        self._name, self._over = name, over
        self._client = Client(url, app_id=APPS[0], key=key, on_answer=self.answers.append)
        self.route = self._client._headers[ROUTE_HEADER]

    def run(self) -> None:
        while not self._over.wait(0.05):
            for event in events(f"{self._name}-{len(self.sent)}", BATCH_EVENTS):
                self._client.add(event)
                self.sent.append(event["eventId"])
            self._client.flush()
        self._client.close()


def events(name: str, many: int) -> list[dict[str, object]]:
    return [
        fresh_event("impression", f"{name}-{n}", responseReference=name, renderAttemptId=f"{n}") for n in range(many)
    ]


class Traffic:
    """Clients of both languages, and what they were told."""

    def __init__(self, stack: ExitStack, folder: Path, url: str, keys: dict[str, str]) -> None:
        self._over = threading.Event()
        self._senders = [Sender(f"p{n}", url, keys["python"], self._over) for n in range(PYTHON_CLIENTS)]
        self._nodes: list[tuple[list[dict[str, object]], subprocess.Popen[str]]] = []
        self._stack, self._folder, self._url, self._key = stack, folder, url, keys["node"]
        self.routes = [one.route for one in self._senders]
        """Of the clients for Python, which send all the time."""
        for one in self._senders:
            one.start()

    def clients_for_node(self) -> None:
        """Others that begin now, and send a few batches each."""
        for _ in range(NODE_CLIENTS):
            number = len(self._nodes)
            folder = self._folder / f"node{number}"
            folder.mkdir()
            made = events(f"n{number}", NODE_EVENTS)
            arguments = (self._url, "queue", APPS[1], self._key)
            self._nodes.append((made, self._stack.enter_context(node(folder, made, *arguments))))

    def wait_for_node(self) -> None:
        for _, process in self._nodes:
            assert process.wait(120) == 0  # what it prints fits into the pipe

    def end(self) -> dict[str, str]:
        """What each event was answered; each once."""
        found: dict[str, str] = {}
        for made, process in self._nodes:
            answers = [line.split() for line in lines(process) if line != "added"]
            assert process.wait(60) == 0
            assert sorted(one[0] for one in answers) == sorted(event["eventId"] for event in made)
            found |= {one[0]: one[1] for one in answers}
        self._over.set()
        for one in self._senders:
            one.join(120)
            assert not one.is_alive()
            assert [answer.event["eventId"] for answer in one.answers] == one.sent
            found |= {answer.event["eventId"]: answer.status for answer in one.answers}
        return found


def seen(found: Nginx, since: int, routes: Collection[str]) -> dict[str, list[int]]:
    """The APIs that answered each of these clients since a batch, when each of them had some more batches acknowledged."""
    of: dict[str, list[int]] = {}

    def enough() -> bool:
        of.clear()
        for route, port in found.batches()[since:]:
            of.setdefault(route, []).append(port)
        return all(len(of.get(route, ())) >= BATCHES_SEEN for route in routes)

    until(enough, "more batches of each client")
    return {route: of[route] for route in routes}


def kill_one(found: Nginx, traffic: Traffic, victim: Api) -> int:
    """Its clients move and those of the other stay; when it is back, so are they. Gives how many moved."""
    homes = {route: ports[-1] for route, ports in seen(found, len(found.batches()), traffic.routes).items()}
    traffic.clients_for_node()
    victim.kill()
    since = len(found.batches())
    for route, ports in seen(found, since, traffic.routes).items():
        assert ports[-1] != victim.port
        assert homes[route] == victim.port or set(ports) == {homes[route]}
    victim.start()
    until(
        lambda: {r: p[-1] for r, p in seen(found, since, traffic.routes).items()} == homes, "all to be where they were"
    )
    return list(homes.values()).count(victim.port)


def verify(folder: Path, settings: dict[str, str], billed: Collection[str], expected: Collection[str]) -> None:
    """Each event is billed once, and the store is sound."""
    assert sorted(billed) == sorted(expected)
    said = patra(folder, "verify", **settings)
    assert said.returncode == 0, said.stdout + said.stderr


def billed(found: Nginx, authority: str) -> list[str]:
    """The events behind every billable fact, asked for through nginx."""
    http = urllib3.PoolManager(ca_certs=authority, headers={"Authorization": f"Bearer {TOKEN}"})
    keys: list[str] = []
    after: int | None = -1
    while after is not None:
        answer = http.request("GET", f"{found.url}/attribution/facts/billable?limit=1000&after={after}").json()
        keys += [one["billingKey"] for one in answer["items"]]
        after = answer["next"]
    return ["-".join(key.split("|")[:2]) for key in keys]


def prove(folder: Path, rounds: int) -> str:
    with ExitStack() as stack:
        url = stack.enter_context(services.postgres(durable=True))
        db = open_database(url)
        migrate(db, packages())
        keys = {app: db.run(lambda tx, app=app: add_key(tx, app, 0)) for app in APPS}
        db.close()
        settings = {
            "PATRA_STORE_URL": url,
            "PATRA_WEB_ADMIN_TOKENS": "env:PROOF_TOKEN",
            "PROOF_TOKEN": TOKEN,
            "PATRA_WEB_TRUSTED_PROXIES": "127.0.0.1",
            "PATRA_LOG_LEVEL": "warning",
        }
        apis = []
        for _ in range(2):
            apis.append(Api(folder, settings))
            stack.callback(apis[-1].kill)
        tls = certificate(folder)
        stack.enter_context(patch.dict(os.environ, SSL_CERT_FILE=tls.authority, NODE_EXTRA_CA_CERTS=tls.authority))
        found = stack.enter_context(nginx(folder / "nginx", [one.port for one in apis], tls))
        traffic = Traffic(stack, folder, found.url, keys)
        stayed = first_look(found, traffic)
        moved = sum(kill_one(found, traffic, victim) for _ in range(rounds) for victim in apis)
        answers = traffic.end()
        assert set(answers.values()) <= {"accepted", "duplicate"}
        verify(folder, settings, billed(found, tls.authority), answers)
        again = sum(status == "duplicate" for status in answers.values())
        return (
            f"{stayed} clients stayed with their API of two; {rounds * 2} kills, {moved} moves and as many returns; "
            f"{len(answers)} events answered, {again} of them a second time, each billed once"
        )


def first_look(found: Nginx, traffic: Traffic) -> int:
    """While nothing fails every client of either language has one API, and both have clients."""
    traffic.clients_for_node()
    traffic.wait_for_node()
    of = seen(found, 0, traffic.routes)
    others = {route for route, _ in found.batches()} - of.keys()
    assert len(others) == NODE_CLIENTS
    of |= seen(found, 0, others)
    assert {len(set(ports)) for ports in of.values()} == {1}
    assert len({port for ports in of.values() for port in ports}) == 2
    return len(of)


def main() -> str:
    with tempfile.TemporaryDirectory(prefix="patra-nginx-") as folder:
        return prove(Path(folder), int(os.environ.get("PROVE_ROUNDS", "5")))
