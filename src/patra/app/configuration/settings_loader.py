"""Turns a settings file and `PATRA_*` variables into the settings, and where each value came from.

Built-in default < settings file < `PATRA_SECTION_FIELD`. The file is the one named by `--config`, else by
`PATRA_CONFIG`, else `patra.toml` in the working directory if there is one.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from patra.app.configuration.settings import Setting, Settings, every_setting, sections
from patra.app.configuration.settings_section import Section, display_value
from patra.kernel.errors import ConfigInvalid

DEFAULT_FILE = "patra.toml"
DEFAULT = "default"
OTHER_VARIABLES = ("PATRA_CONFIG", "PATRA_DEBUG")
OTHER_PREFIXES = ("PATRA_TEST_",)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, the origin of each value by its key (`web.port`), and variables that no setting reads."""

    settings: Settings
    origins: Mapping[str, str]
    file: str | None
    unread: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, Any, str]]:
        """Key, value as it may be shown, origin; in the order of the declaration."""
        return [
            (
                f"{section}.{field.name}",
                display_value(field, getattr(values, field.name)),
                self.origins[f"{section}.{field.name}"],
            )
            for section in sections()
            if isinstance(values := getattr(self.settings, section), Section)
            for field in msgspec.structs.fields(type(values))
        ]


def origin_kind(origin: str) -> str:
    """What an origin is: `default`, `environment`, `option`, or `file`."""
    if origin == DEFAULT:
        return DEFAULT
    return "environment" if origin.startswith("PATRA_") else "option" if origin.startswith("--") else "file"


def load(
    config: str | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Loaded:
    """Read every source. `overrides` are options of the command line, by key, with `--option` as their origin."""
    known = {setting.key: setting for setting in every_setting()}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(known, DEFAULT)

    path = _file(config, environ, folder or Path.cwd())
    for key, value in _read(path, known) if path else ():
        values[key], origins[key] = _convert_value(known[key], value, f"{path}: {key}"), str(path)
    unread: list[str] = []
    for variable, setting in _variables(environ, known, unread):
        values[setting.key] = _from_text(setting, environ[variable], variable)
        origins[setting.key] = variable
    for key, value in (overrides or {}).items():
        option = f"--{key.partition('.')[2].replace('_', '-')}"
        values[key], origins[key] = _convert_value(known[key], value, option), option

    built: dict[str, Any] = {
        section: struct(
            **{key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{section}.")}
        )
        for section, struct in sections().items()
    }
    settings = Settings(**built)
    return Loaded(settings=settings, origins=origins, file=str(path) if path else None, unread=tuple(unread))


def _file(config: str | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    named = config or environ.get("PATRA_CONFIG")
    if named:
        return Path(named)
    default = folder / DEFAULT_FILE
    return default if default.is_file() else None


def _read(path: Path, known: Mapping[str, Setting]) -> list[tuple[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigInvalid(
            "config_unreadable",
            f"the settings file cannot be read: {error.strerror}",
            place=str(path),
            advice="name another with --config or PATRA_CONFIG",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigInvalid(
            "config_malformed", f"not TOML: {error}", place=str(path), advice="correct the line that is named"
        ) from error
    found: list[tuple[str, Any]] = []
    for section, table in tables.items():
        if section not in sections():
            raise _unknown_name(f"{path}: {section}", "section", section, sections())
        if not isinstance(table, dict):
            raise ConfigInvalid(
                "config_wrong_type", "a section is a table", place=f"{path}: {section}", advice=f"write [{section}]"
            )
        for name, value in cast("dict[str, Any]", table).items():
            key = f"{section}.{name}"
            if key not in known:
                raise _unknown_name(
                    f"{path}: {key}", "setting", name, [k.name for k in known.values() if k.section == section]
                )
            found.append((key, value))
    return found


def _variables(
    environ: Mapping[str, str], known: Mapping[str, Setting], unread: list[str]
) -> list[tuple[str, Setting]]:
    """Variables that are settings. An unknown name in a known section is refused, one in no section is only noted."""
    by_variable = {setting.variable: setting for setting in known.values()}
    found: list[tuple[str, Setting]] = []
    for variable in sorted(environ):
        if not variable.startswith("PATRA_") or variable in OTHER_VARIABLES or variable.startswith(OTHER_PREFIXES):
            continue
        if setting := by_variable.get(variable):
            found.append((variable, setting))
        elif variable.split("_")[1].lower() in sections():
            raise _unknown_name(variable, "setting", variable, by_variable)
        else:
            unread.append(variable)
    return found


def _from_text(setting: Setting, text: str, place: str) -> Any:
    """A variable's text: a list is comma-separated or a JSON array, a table is a JSON object."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass  # then it is text that begins with a bracket
        else:
            return _convert_value(setting, value, place)
    if isinstance(setting.default, (tuple, list, frozenset)):
        return _convert_value(setting, [item.strip() for item in text.split(",") if item.strip()], place)
    return _convert_value(setting, text.strip(), place, strict=False)


def _convert_value(setting: Setting, value: Any, place: str, *, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, setting.type, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(
            "config_wrong_value",
            f"{_what(error)}{'' if setting.secret else f' (it is {value!r})'}",
            place=place,
            advice=f"{setting.key}: {setting.description}",
        ) from None


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
"""What a type is called in a settings file."""


def _what(error: msgspec.ValidationError) -> str:
    text = str(error)
    for kind, word in _WORDS.items():
        text = text.replace(f"`{kind}`", word)
    return text[:1].lower() + text[1:]


def _unknown_name(place: str, kind: str, name: str, names: Iterable[str]) -> ConfigInvalid:
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none yet'}"
    return ConfigInvalid("config_unknown", f"there is no such {kind}", place=place, advice=advice)
