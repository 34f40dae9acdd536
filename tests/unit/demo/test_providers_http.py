"""The simulated providers are started twice without harm."""

import socket
import sys
from pathlib import Path

import pytest

from patra.demo import providers_http


def test_a_second_simulation_leaves_the_packs_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["providers_http"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(providers_http, "PORT", port)
        pack = tmp_path / "pubmed.yaml"
        pack.write_text(f"baseUrl: http://127.0.0.1:{port}/pubmed\n", encoding="utf-8")
        with pytest.raises(SystemExit, match=f"port {port} is in use, and the packs of this folder name it"):
            providers_http.main()
    assert [path.name for path in tmp_path.iterdir()] == ["pubmed.yaml"]
