"""A pack reads the secrets that the installation has allowed for its source, and no other."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from patra.cli.main import run
from patra.ingest.packs import bundled, secret_grants
from patra.ingest.packs.secret_grants import Destination, Grant, is_allowed, problems_of
from patra.kernel.db import Database
from tests.contract.ingest.running.test_credentials_at_the_gate import keyed
from tests.contract.ingest.running.world import T0, T1, world
from tests.support.hostile_provider import Provider, crowded, serving

RECORDS = crowded(20, T0, T1, crowd=False)
REFERENCE = "env:HOSTILE_KEY"
Command = Callable[..., str]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_KEY", "s3cr3t-k3y-value")


@pytest.fixture
def patra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'patra.db'}")

    run(["migrate"])

    def command(*args: str, code: int = 0) -> str:
        capfdbinary.readouterr()
        found = run([*args])
        out, err = (stream.decode() for stream in capfdbinary.readouterr())
        assert found == code, out + err
        return out + err

    return command


def test_a_strangers_pack_is_refused_until_its_secret_is_allowed(patra: Command, tmp_path: Path) -> None:
    file = tmp_path / "stranger.yaml"
    file.write_text(yaml.safe_dump(keyed("http://127.0.0.1:1")), "utf-8")
    for command in ("load", "check"):
        said = patra("ingest", "pack", command, str(file), code=1)
        assert "credentials.mine.secrets.apiKey: hostile may not read env:HOSTILE_KEY" in said
        assert "[i_secret_not_allowed]" in said
        assert "patra ingest secret allow hostile env:HOSTILE_KEY" in said
    assert (patra("ingest", "sources")).startswith("nothing found")
    assert patra("ingest", "secret", "allow", "hostile", "HOSTILE_KEY") == "hostile may read env:HOSTILE_KEY\n"
    assert "hostile\tenv:HOSTILE_KEY" in patra("ingest", "secret", "list")
    assert "may be loaded" in patra("ingest", "pack", "check", str(file))
    assert "new, version 1" in patra("ingest", "pack", "load", str(file))
    assert "no longer" in patra("ingest", "secret", "revoke", "hostile", "HOSTILE_KEY")
    assert "was not allowed" in patra("ingest", "secret", "revoke", "hostile", "HOSTILE_KEY", code=1)
    assert (patra("ingest", "secret", "list")).startswith("nothing found")
    acts = patra("audit")
    assert "ingest.secret_allow" in acts
    assert "ingest.secret_revoke" in acts
    assert "i_secret_not_allowed" in patra("ingest", "pack", "load", str(file), code=1)
    assert "is not a reference" in patra("ingest", "secret", "allow", "hostile", "file:", code=2)


def test_a_secret_is_allowed_before_there_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that needs it cannot be loaded before, and the first pack makes the store."""
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'new.db'}")
    file = tmp_path / "stranger.yaml"
    file.write_text(yaml.safe_dump(keyed("http://127.0.0.1:1")), "utf-8")
    assert run(["ingest", "pack", "load", str(file)]) == 1
    assert run(["ingest", "secret", "allow", "hostile", "HOSTILE_KEY"]) == 0
    assert run(["ingest", "pack", "load", str(file)]) == 0


def test_to_try_a_strangers_pack_sends_no_secret(patra: Command, tmp_path: Path) -> None:
    provider = Provider(RECORDS)
    with serving(provider) as url:
        file = tmp_path / "stranger.yaml"
        file.write_text(yaml.safe_dump(keyed(url)), "utf-8")
        said = patra("ingest", "try", str(file), "search", "--from", "2026-03-01", "--to", "2026-03-02", code=1)
        assert "may not read env:HOSTILE_KEY" in said
        assert provider.asked == []
        patra("ingest", "secret", "allow", "hostile", "HOSTILE_KEY")
        patra("ingest", "try", str(file), "search", "--from", "2026-03-01", "--to", "2026-03-02")
        assert "s3cr3t-k3y-value" in provider.asked[0].path


def test_a_run_does_not_read_what_is_not_allowed(database: Database) -> None:
    with world(database, RECORDS) as w:
        w.load(keyed(w.url))
        w.db.run(lambda tx: secret_grants.revoke(tx, "hostile", REFERENCE, by="test", now=1))
        w.trigger()
        w.executor.run_once()
        assert w.provider.asked == []
        assert w.one("SELECT reason_code FROM ing_task_run_batch") == "i_secret_withheld"


def test_revoking_reaches_a_process_that_has_compiled_the_plan(database: Database) -> None:
    with world(database, RECORDS) as w:
        w.load(keyed(w.url))
        w.trigger()
        w.executor.run_once()
        asked = len(w.provider.asked)
        assert asked > 0
        w.db.run(lambda tx: secret_grants.revoke(tx, "hostile", REFERENCE, by="test", now=1))
        w.executor.run_once()
        assert len(w.provider.asked) == asked


def where(source: str, *hosts: str, direct: bool = True) -> Destination:
    return Destination(source=source, hosts=frozenset(hosts), direct=direct)


def test_a_pack_of_the_distribution_reads_its_own_variable_for_its_own_hosts_only() -> None:
    assert is_allowed("env:NCBI_API_KEY", where("pubmed", "eutils.ncbi.nlm.nih.gov"), ())
    assert not is_allowed("env:NCBI_API_KEY", where("pubmed", "eutils.ncbi.nlm.nih.gov", "evil.test"), ())
    assert not is_allowed("env:NCBI_API_KEY", where("pubmed", "eutils.ncbi.nlm.nih.gov", direct=False), ())
    assert not is_allowed("env:AWS_SECRET_ACCESS_KEY", where("pubmed", "eutils.ncbi.nlm.nih.gov"), ())
    assert not is_allowed("env:NCBI_API_KEY", where("mine", "eutils.ncbi.nlm.nih.gov"), ())


def test_a_grant_for_hosts_ends_where_the_pack_names_others() -> None:
    grants = [Grant(source="mine", reference="env:KEY", hosts=("API.good.test",))]
    assert is_allowed("env:KEY", where("mine", "api.good.test"), grants)
    assert not is_allowed("env:KEY", where("mine", "api.good.test", "evil.test"), grants)
    assert not is_allowed("env:OTHER", where("mine", "api.good.test"), grants)
    assert not is_allowed("env:KEY", where("other", "api.good.test"), grants)


@pytest.mark.parametrize("name", bundled.names())
def test_no_pack_of_the_distribution_needs_anything_allowed(name: str) -> None:
    assert problems_of(bundled.pack(name), ()) == []


def test_a_pack_of_the_distribution_with_another_address_is_read_without_its_key() -> None:
    text = bundled.text("pubmed").replace("https://eutils.ncbi.nlm.nih.gov", "https://evil.test")
    found = problems_of(bundled.parse_pack(text, "pubmed.yaml"), ())
    assert [str(one.severity) for one in found] == ["warning"]
    assert "evil.test" in found[0].message
