"""The real process: it comes up, answers, stops cleanly on a signal, and survives being killed."""

import re
import signal
import socket
import sys
from pathlib import Path

import msgspec

from tests.e2e.process import PATRA, environment, patra, started, up

STUCK = (sys.executable, "-m", "tests.e2e.stuck_process")
ROOT = Path(__file__).parents[2]


def test_up_answers_health_and_ready_and_ends_with_0_on_a_signal(tmp_path: Path, database_url: str) -> None:
    number = signal.SIGINT if database_url.startswith("sqlite") else signal.SIGTERM
    with up(tmp_path, PATRA_STORE_URL=database_url, PATRA_WEB_SHUTDOWN_SECONDS="10") as process:
        assert process.get("/health").json() == {"status": "alive"}
        ready = process.get("/ready")
        assert (ready.status, ready.json()["ready"]) == (200, True)
        assert b"patra_http_requests_total" in process.get("/metrics").data
        process.signal(number)
        assert process.ended() == 0
    assert process.events()[-2:] == ["stopping", "closed"]
    assert process.log[-2]["by"] == number.name


def test_a_second_process_on_the_same_store_finds_the_tables_there(tmp_path: Path) -> None:
    with up(tmp_path) as first, up(tmp_path, "web", "--port", "0") as second:
        assert "migrated" in first.events()
        assert "migrated" not in second.events()
        assert second.get("/ready").status == 200
        assert [loop["name"] for loop in second.get("/loops").json()["loops"]] == ["attribution.turned_away"]


def test_a_killed_process_leaves_a_store_that_the_next_one_uses(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        assert process.get("/ready").status == 200
        process.signal(signal.SIGKILL)
        assert process.ended() == -signal.SIGKILL
    with up(tmp_path) as process:
        assert process.get("/ready").status == 200


def test_a_loop_that_does_not_end_is_left_behind_when_the_bound_has_passed(tmp_path: Path) -> None:
    with started(ROOT, [*STUCK, "5"]) as process:
        process.until("stuck")
        process.signal(signal.SIGTERM)
        assert process.ended() == 1
    assert process.log[-1]["event"] == "left_behind"
    assert process.log[-1]["what"] == ["example.stuck"]


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    with started(ROOT, [*STUCK, "3600"]) as process:
        process.until("stuck")
        process.signal(signal.SIGTERM)
        process.until("stopping")
        process.signal(signal.SIGTERM)
        assert process.ended() == 128 + signal.SIGTERM


def test_up_refuses_to_listen_beyond_this_machine_without_an_admin_token(tmp_path: Path) -> None:
    refused = patra(tmp_path, "up", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 3
    (line,) = refused.stderr.splitlines()
    assert line.startswith("patra: web.host: config_bind_needs_token: 0.0.0.0 is reachable from other machines")

    made = msgspec.json.decode(patra(tmp_path, "token", "new", "admin", "--name", "alice", "--json").stdout)
    command = ("up", "--host", "0.0.0.0", "--port", "0")
    with up(tmp_path, *command, PATRA_WEB_ADMIN_TOKENS=made["entry"]) as process:
        assert process.log[-1]["open"] is False
        assert process.get("/health").status == 200
        assert process.get("/loops").status == 401


def test_a_taken_port_is_one_line_and_exit_code_3(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = patra(tmp_path, "up", "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 3
    (line,) = refused.stderr.splitlines()
    assert "config_address_unusable" in line
    assert not (tmp_path / "patra.db").exists()


def test_a_worker_can_answer_probes_on_a_port_of_its_own(tmp_path: Path) -> None:
    with up(tmp_path, "work", "--port", "0") as process:
        assert process.get("/health").status == 200
        assert process.get("/ready").status == 200


def test_doctor_finds_a_running_installation_well(tmp_path: Path, database_url: str) -> None:
    with up(tmp_path, PATRA_STORE_URL=database_url):
        result = patra(tmp_path, "doctor", "--json", PATRA_STORE_URL=database_url)
    assert result.returncode == 0, result.stdout
    health = {check["name"]: check["health"] for check in msgspec.json.decode(result.stdout)}
    assert (health["store"], health["migrations"], health["store writable"]) == ("ok", "ok", "ok")


def test_the_demo_comes_up_shows_itself_and_leaves_nothing_behind(tmp_path: Path) -> None:
    result = patra(tmp_path, "demo", "--once", TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "Patra is up at http://127.0.0.1:" in result.stdout
    for path in ("/health", "/ready", "/openapi.json", "/metrics"):
        assert f"{path} " in result.stdout
    assert "/console/\n" in result.stdout.partition("/health")[0]
    assert "1171 events of two apps" in result.stdout
    assert "1017 accepted, 149 duplicate, 5 rejected" in result.stdout
    assert "two events are dead letters" in result.stdout
    assert "its letter replayed: it is handled" in result.stdout
    assert re.findall(r"^  (\d)\. http", result.stdout, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]
    assert "killed with -9 in the middle" in result.stdout
    assert "took over when the leases had run out: 324 records" in result.stdout
    assert "nothing is missing, nothing is there twice: 324 records are 108 works" in result.stdout
    assert "answers were 429" in result.stdout
    assert "throttled: 0 answers" not in result.stdout
    assert "crowded day: 0 windows" not in result.stdout
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_installed_command_is_the_module() -> None:
    import subprocess

    script = Path(sys.executable).parent / "patra"
    for command in ([str(script)], list(PATRA)):
        result = subprocess.run([*command, "--version"], env=environment(), capture_output=True, text=True, check=True)
        assert result.stdout.startswith("patra, version ")


def test_a_part_that_never_lets_go_does_not_keep_the_process_beyond_the_bound(tmp_path: Path) -> None:
    with started(ROOT, [*STUCK, "0.2", "release"]) as process:
        process.until("working")
        process.signal(signal.SIGTERM)
        assert process.ended() == 1
        assert process.events()[-1] == "left_behind"
        assert "closing" in process.log[-1]["what"]


def test_sighup_reads_the_tokens_again_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("the-first-token-of-them-all")
    with up(tmp_path, PATRA_WEB_ADMIN_TOKENS="file:token") as process:
        (tmp_path / "token").write_text("the-second-token-of-them-all")
        process.signal(signal.SIGHUP)
        process.until("tokens_reloaded")
        assert process.get("/health").status == 200
