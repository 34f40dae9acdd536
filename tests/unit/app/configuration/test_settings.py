"""Every setting is documented where it is declared, and what is secret stays so when it is shown."""

from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from patra.app.configuration.engine_settings import AlertSettings
from patra.app.configuration.settings import Setting, Settings, WebSettings, every_setting, sections
from patra.app.configuration.settings_section import SECRET, SECRET_PATH, URL, Section, display_value


@pytest.mark.parametrize("setting", every_setting(), ids=lambda setting: setting.key)
def test_every_setting_says_what_it_is_for(setting: Setting) -> None:
    assert len(setting.description) > 10, f"{setting.key} has no Meta(description=…)"
    assert setting.description.endswith((".", ")")), f"{setting.key}: a description is a sentence"


def test_every_section_says_what_it_is_for() -> None:
    assert {name for name, section in sections().items() if not (section.__doc__ or "").strip()} == set()


def test_every_default_is_a_value_that_the_setting_itself_would_take() -> None:
    for setting in every_setting():
        assert msgspec.convert(msgspec.to_builtins(setting.default), setting.type) == setting.default


def test_settings_cannot_be_changed_once_they_are_read() -> None:
    with pytest.raises(AttributeError):
        Settings().web.port = 1  # pyright: ignore[reportAttributeAccessIssue]


class Example(Section, frozen=True):
    """An example."""

    password: Annotated[str, Meta(extra=SECRET)] = ""
    keys: Annotated[tuple[str, ...], Meta(extra=SECRET)] = ()
    url: Annotated[str, Meta(extra=URL)] = ""
    hook: Annotated[str, Meta(extra=SECRET_PATH)] = ""
    plain: str = "seen"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://hooks.example.org/services/T00/B00/k3y", "https://hooks.example.org/(hidden)"),
        ("https://hooks.example.org?k3y", "https://hooks.example.org/(hidden)"),
        ("https://u:k3y@hooks.example.org:8443/", "https://***@hooks.example.org:8443/"),
        ("https://[k3y", "(hidden)"),
        ("env:HOOK", "env:HOOK"),
        ("", ""),
    ],
)
def test_a_url_whose_path_may_be_a_key_is_shown_by_its_host(url: str, told: str) -> None:
    (field,) = (field for field in msgspec.structs.fields(Example) if field.name == "hook")
    assert display_value(field, url) == told
    assert "k3y" not in repr(AlertSettings(webhook_url=url))


def test_secrets_are_hidden_and_references_to_them_are_not() -> None:
    values = Example(
        password="hunter2hunter2",
        keys=("alice=sha256:00ff", "env:KEY", "bob=file:/run/key", "sha256:77"),
        url="postgresql://patra:hunter2@db/patra",
    )
    fields = {
        field.name: display_value(field, getattr(values, field.name)) for field in msgspec.structs.fields(Example)
    }

    assert fields["password"] == "(hidden)"
    assert fields["keys"] == ["alice=(hidden)", "env:KEY", "bob=file:/run/key", "(hidden)"]
    assert "hunter2" not in fields["url"]
    assert fields["url"].startswith("postgresql://")
    assert fields["plain"] == "seen"


def test_a_section_in_a_traceback_or_log_shows_no_secret() -> None:
    assert "deadbeef" not in repr(WebSettings(admin_tokens=("sha256:deadbeef",)))
    assert "hunter2" not in repr(Example(password="hunter2hunter2"))
