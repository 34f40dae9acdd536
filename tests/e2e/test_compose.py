"""The processes of the scaled compose file start with its commands and settings, become ready, and are asked as Prometheus does."""

import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import urllib3
import yaml

from patra.kernel.ids import new_id
from tests import services
from tests.e2e.process import PATIENCE, PATRA, Process, patra, started

DEPLOY = Path(__file__).parents[2] / "deploy" / "compose"
PORT = "8642"
RUN_SECRETS = "/run/secrets"


def ready(process: Process) -> None:
    """As a kubelet asks, or the health check of the image: by any address."""
    until = time.monotonic() + PATIENCE
    while (
        urllib3.request("GET", f"{process.url}/ready", headers={"Host": "10.1.2.3:8642"}, retries=False).status != 200
    ):
        assert time.monotonic() < until, process.events()
        time.sleep(0.1)


def test_every_process_of_the_scaled_file_becomes_ready_and_is_scraped(
    postgres_url: str, redis_url: str, nats_url: str, tmp_path: Path
) -> None:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.scaled.yaml").read_text())
    viewer = secrets.token_hex(32)
    for name, text in (("store_url", postgres_url), ("admin_token", secrets.token_hex(32)), ("viewer_token", viewer)):
        (tmp_path / name).write_text(text)
    ours = {name: one for name, one in document["services"].items() if one["image"] == "patra:latest"}
    elsewhere = {
        "PATRA_INGEST_REDIS_URL": redis_url,
        "PATRA_BUS_NATS_URL": nats_url,
        "PATRA_BUS_NATS_STREAM": f"C{new_id()}",  # the server is that of other tests, too
        "PATRA_LOG_FORMAT": "json",
    }
    settings = {
        name: value.replace(RUN_SECRETS, str(tmp_path)) for name, value in ours["web"]["environment"].items()
    } | elsewhere
    done = patra(tmp_path, *ours.pop("migrate")["command"], **settings)
    assert done.returncode == 0, done.stderr

    with ExitStack() as stack:
        processes: dict[str, Process] = {}
        for name, one in ours.items():
            port = str(services.free_port())
            command = [port if word == PORT else word for word in one["command"]]
            processes[name] = stack.enter_context(
                started(tmp_path, [*PATRA, *command], **settings, PATRA_WEB_PORT=port)
            )
        loops: set[str] = set()
        for name, process in processes.items():
            process.url = process.until("listening")["url"].replace("0.0.0.0", "127.0.0.1")
            ready(process)
            asked = {"Host": f"{name}:{PORT}", "Authorization": f"Bearer {viewer}"}
            for path in ("/metrics", "/loops"):
                answer = urllib3.request("GET", process.url + path, headers=asked, retries=False)
                assert answer.status == 200, (name, path, answer.data)
            loops |= {loop["name"].partition(".")[0] for loop in answer.json()["loops"]}
        assert loops == {"attribution", "ingest", "bus"}
