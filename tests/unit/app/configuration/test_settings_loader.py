"""Default < file < variable < option; each value remembers its origin; what is wrong is said with its place."""

from pathlib import Path

import pytest

from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import every_setting
from patra.app.configuration.settings_loader import load, origin_kind
from patra.kernel.errors import ConfigInvalid


def file(folder: Path, text: str) -> str:
    path = folder / "patra.toml"
    path.write_text(text)
    return str(path)


def refusal(
    config: str | None = None, environ: dict[str, str] | None = None, folder: Path | None = None
) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        load(config, environ or {}, folder=folder)
    return caught.value


def test_without_any_source_every_value_is_the_default(tmp_path: Path) -> None:
    found = load(None, {}, folder=tmp_path)

    assert found.file is None
    assert {key: (value, origin) for key, value, origin in found.rows()}["web.port"] == (8642, "default")
    assert set(found.origins) == {setting.key for setting in every_setting()}
    assert set(found.origins.values()) == {"default"}


def test_a_variable_wins_over_the_file_and_an_option_over_both(tmp_path: Path) -> None:
    config = file(tmp_path, '[web]\nport = 1\nhost = "localhost"\nthreads = 2\n')
    environ = {"PATRA_WEB_PORT": "2", "PATRA_WEB_THREADS": "3"}

    found = load(config, environ, {"web.threads": 4})

    web = found.settings.web
    assert (web.host, web.port, web.threads) == ("localhost", 2, 4)
    assert found.origins["web.host"] == config
    assert found.origins["web.port"] == "PATRA_WEB_PORT"
    assert found.origins["web.threads"] == "--threads"
    assert found.origins["store.url"] == "default"


def test_the_file_of_the_working_directory_is_taken_unless_another_is_named(tmp_path: Path) -> None:
    here = file(tmp_path, "[web]\nport = 1\n")
    other = tmp_path / "other.toml"
    other.write_text("[web]\nport = 2\n")

    assert load(None, {}, folder=tmp_path).file == here
    assert load(None, {"PATRA_CONFIG": str(other)}, folder=tmp_path).settings.web.port == 2
    assert load(str(other), {"PATRA_CONFIG": here}, folder=tmp_path).settings.web.port == 2


def test_a_variable_is_read_as_the_type_of_its_setting(tmp_path: Path) -> None:
    environ = {
        "PATRA_STORE_MIGRATE_ON_START": "false",
        "PATRA_WEB_REQUEST_SECONDS": "2.5",
        "PATRA_WEB_ADMIN_TOKENS": "alice=env:A, env:B",
        "PATRA_WEB_VIEWER_TOKENS": '["env:C"]',
    }

    found = load(None, environ, folder=tmp_path).settings

    assert found.store.migrate_on_start is False
    assert found.web.request_seconds == 2.5
    assert found.web.admin_tokens == ("alice=env:A", "env:B")
    assert found.web.viewer_tokens == ("env:C",)


def test_a_wrong_value_is_reported_with_file_key_and_what_to_do(tmp_path: Path) -> None:
    config = file(tmp_path, '[web]\nport = "eighty"\n')

    error = refusal(config)

    assert error.code == "config_wrong_value"
    assert error.place == f"{config}: web.port"
    assert error.detail == "expected a whole number, got text (it is 'eighty')"
    assert error.advice.startswith("web.port: Port to listen on")


def test_a_value_out_of_bounds_is_refused_with_its_variable(tmp_path: Path) -> None:
    error = refusal(environ={"PATRA_WEB_PORT": "70000"}, folder=tmp_path)

    assert (error.code, error.place) == ("config_wrong_value", "PATRA_WEB_PORT")
    assert "65535" in error.detail


def test_a_wrong_secret_is_reported_without_the_secret(tmp_path: Path) -> None:
    config = file(tmp_path, "[web]\nadmin_tokens = [31337]\n")

    assert "31337" not in str(refusal(config))


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("[wbe]\nport = 1\n", "wbe", "did you mean web?"),
        ("[web]\nprot = 1\n", "web.prot", "did you mean port?"),
        ("[zzz]\n", "zzz", "known: store, web, log"),
    ],
)
def test_an_unknown_name_in_the_file_is_refused_and_the_nearest_is_offered(
    tmp_path: Path, text: str, place: str, advice: str
) -> None:
    config = file(tmp_path, text)

    error = refusal(config)

    assert (error.code, error.place) == ("config_unknown", f"{config}: {place}")
    assert error.advice.startswith(advice)


def test_a_variable_with_a_typing_error_is_refused_in_a_known_section_and_noted_elsewhere(tmp_path: Path) -> None:
    error = refusal(environ={"PATRA_WEB_PROT": "1"}, folder=tmp_path)
    assert (error.place, error.advice) == ("PATRA_WEB_PROT", "did you mean PATRA_WEB_PORT?")

    assert load(None, {"PATRA_WBE_PORT": "1", "PATRA_TEST_POSTGRES": "x"}, folder=tmp_path).unread == (
        "PATRA_WBE_PORT",
    )


def test_a_file_that_is_missing_malformed_or_no_table_is_refused(tmp_path: Path) -> None:
    assert refusal(str(tmp_path / "none.toml")).code == "config_unreadable"
    assert refusal(file(tmp_path, "[web\n")).code == "config_malformed"
    assert refusal(file(tmp_path, "web = 1\n")).code == "config_wrong_type"


def test_a_reference_gives_what_it_refers_to(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("  from the file\n")

    assert resolve("env:NAME", "x", {"NAME": "from the environment"}) == "from the environment"
    assert resolve(f"file:{secret}", "x", {}) == "from the file"
    assert resolve("sqlite:///x.db", "x", {}) == "sqlite:///x.db"


@pytest.mark.parametrize("reference", ["env:NOT_THERE", "file:not-there", "env:EMPTY"])
def test_a_reference_to_nothing_is_refused_with_the_setting_that_holds_it(reference: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve(reference, "store.url", {"EMPTY": " "})

    assert (caught.value.code, caught.value.place) == ("config_secret_missing", "store.url")
    assert caught.value.advice


def test_an_origin_is_a_default_a_file_a_variable_or_an_option(tmp_path: Path) -> None:
    (tmp_path / "patra.toml").write_text("[web]\nport = 1\n")
    found = load(None, {"PATRA_WEB_HOST": "127.0.0.1"}, {"store.pool_size": 3}, tmp_path).origins
    kinds = {key: origin_kind(found[key]) for key in ("web.port", "web.host", "store.pool_size", "log.level")}
    assert kinds == {"web.port": "file", "web.host": "environment", "store.pool_size": "option", "log.level": "default"}
