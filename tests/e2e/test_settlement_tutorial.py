"""The commands of the tutorial on settlement, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.e2e.process import environment

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "settle-ad-events.md"


def test_a_newcomer_gets_from_the_first_event_to_a_statement(tmp_path: Path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    first, *commands = re.findall(r"^    (\S.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert first == "patra up"
    settings = Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0))
    patra = build(settings)
    said: dict[str, str] = {}
    try:
        with serving(app(patra), settings.web) as served:
            variables = {"PATH": path}
            for command in commands:
                if variable := re.fullmatch(r"export (\w+)=(\$\(.*\))", command):
                    echo = subprocess.run(
                        ["sh", "-c", f"echo {variable[2]}"], capture_output=True, text=True, check=True
                    )
                    variables[variable[1]] = echo.stdout.strip()
                    continue
                where = f" --url {served.url}" if "send-sample" in command else ""
                result = subprocess.run(
                    ["sh", "-c", command + where],
                    cwd=tmp_path,
                    env=environment(**variables),
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert result.returncode == int("--without" in command), (command, result.stdout, result.stderr)
                said[command] = result.stdout
    finally:
        patra.close(5)
    assert said["patra attribution send-sample --app shop --days-ago 1"].count("f_accepted") == 8
    assert "responseReference" in said["patra attribution rejects"]
    assert "305000 micro-EUR" in said["patra attribution period close $DAY --app shop"]
    assert "4 facts" in said["patra attribution statement verify statement.json"]
    settled = next(text for command, text in said.items() if "settle" in command)
    assert "shop\thome\tcr1\t2\t2" in settled
