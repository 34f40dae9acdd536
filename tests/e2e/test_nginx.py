"""The short form of `./dev prove hashing_balancer`: each of two APIs behind nginx is killed once.

That the configuration is sound is held without nginx, too: tests/unit/test_deploy.py.
"""

from pathlib import Path

import pytest

from tests.prove.hashing_balancer import NGINX, prove

needs_nginx = pytest.mark.skipif(not NGINX, reason="nginx is not installed (Debian: nginx-light)")


@needs_nginx
def test_a_client_stays_with_its_api_moves_when_it_is_killed_and_comes_back(tmp_path: Path):
    prove(tmp_path, rounds=1)
