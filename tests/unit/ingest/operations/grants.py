"""Settings of a store that allows the pack of a source one secret: without it a pack on loopback reads none."""

from pathlib import Path

from click.testing import CliRunner

from patra.cli.ingest.secrets import secret


def config_with_secret(folder: Path, source: str, name: str) -> tuple[str, str]:
    """The option `--config` with such settings."""
    config = folder / "patra.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{folder / "patra.db"}"\n', encoding="utf-8")
    option = ("--config", str(config))
    result = CliRunner().invoke(secret, ["allow", source, name, *option])
    assert result.exit_code == 0, result.output
    return option
