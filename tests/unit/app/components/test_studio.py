"""A studio that could not be built because the store failed is built at the next use, and `/ready` says so until then."""

from pathlib import Path

import msgspec
import pytest

from patra.app.component import BuiltComponent, Component, Context
from patra.app.components import studio
from patra.app.components.studio import StudioEngine
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import COMPONENTS, Patra, build
from patra.kernel.errors import Transient
from tests.support.faults import FaultyDatabase
from tests.support.piper_stand_in import install

pytestmark = pytest.mark.skipif(bool(studio.missing()), reason="the extra studio is not installed")


SAMPLED_STEPS = 6  # each builds every engine again


class DownDatabase(FaultyDatabase):
    """A store that fails at every step while it is down."""

    down = False

    def step(self, place: str) -> None:
        if self.down:
            raise self._fault(place)
        super().step(place)


def patra_with(faulty: list[DownDatabase], folder: Path, fail_at: int | None) -> Patra:
    def join(ground: Context) -> BuiltComponent:
        faulty.append(DownDatabase(ground.db, fail_at))
        return studio.join(msgspec.structs.replace(ground, db=faulty[0]))

    settings = Settings(
        store=StoreSettings(url="sqlite:///:memory:"), studio=StudioSettings(folder=str(folder / "studio"))
    )
    return build(settings, parts=[*COMPONENTS[:-1], Component(name="studio", migrations="patra.studio", join=join)])


def test_a_store_error_at_the_first_use_is_over_with_the_next(tmp_path: Path) -> None:
    faulty: list[DownDatabase] = []
    patra = patra_with(faulty, tmp_path, None)
    assert patra.engine(StudioEngine).studio.desks
    steps = faulty[0].steps
    patra.close(1)
    assert steps > 0
    for fail_at in range(1, steps + 1, max(1, steps // SAMPLED_STEPS)):
        faulty = []
        patra = patra_with(faulty, tmp_path, fail_at)
        with pytest.raises(Transient):
            _ = patra.engine(StudioEngine).studio
        assert patra.engine(StudioEngine).studio.desks
        assert patra.readiness().ready
        patra.close(1)


def test_ready_says_that_the_studio_could_not_be_built_until_it_is(tmp_path: Path) -> None:
    faulty: list[DownDatabase] = []
    patra = patra_with(faulty, tmp_path, None)
    faulty[0].down = True
    assert patra.readiness().ready  # nobody wanted a studio yet
    with pytest.raises(Transient):
        _ = patra.engine(StudioEngine).studio
    found = patra.readiness()
    assert not found.ready
    assert "the studio could not be built" in found.reasons[0]
    faulty[0].down = False
    assert patra.readiness().ready  # asking is a use, too
    patra.close(1)


def check_with(file: Path) -> tuple[str, str]:
    found = studio._check(StudioSettings(profiles=str(file)))
    return found.health.value, found.found


def test_the_doctor_lets_a_neural_voice_speak_and_names_the_file_that_is_missing(tmp_path: Path) -> None:
    program, model, log = install(tmp_path / "voices")
    file = tmp_path / "profiles.yaml"
    file.write_text(
        f"- {{profile_id: anna, worker_type: audio, engine: piper, model: {model}, options: {{program: {program}}}}}\n"
    )
    assert check_with(file)[0] == "ok"
    assert "anna speaks" in check_with(file)[1]
    assert "'Yes.'" in log.read_text()
    Path(f"{model}.json").unlink()
    health, words = check_with(file)
    assert (health, f"anna: no file {model}.json" in words) == ("warning", True)
    install(tmp_path / "voices", fails=True)
    assert "cannot load the model" in check_with(file)[1]
