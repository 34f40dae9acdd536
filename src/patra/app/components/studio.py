"""Turns settings and common ground into the studio, its duties as loops and its check.

The studio is built when it is first used: its libraries (numpy, Pillow, ffmpeg) are an extra, and a process that
makes no films does not pay for them.
"""

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patra.app.component import BuiltComponent, Check, Context, Health
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.secrets import resolve
from patra.app.loops import Loop, describe
from patra.bus.runtime import BusEngine
from patra.kernel.clock import SECOND
from patra.kernel.errors import ConfigInvalid, PatraError
from patra.studio.storage.store import any_task

if TYPE_CHECKING:
    from patra.studio.pipeline import Studio
    from patra.studio.profiles import Profile

NEEDED = ("numpy", "PIL", "imageio_ffmpeg", "espeakng_loader", "zhplot", "qtawesome", "rjieba")
POLL_INTERVAL = SECOND // 4


class StudioEngine:
    """The studio of this process, built when it is first asked for."""

    def __init__(self, ground: Context) -> None:
        self._ground = ground
        self._lock = threading.Lock()
        self._modules: Studio | None = None  # made, and registered on the bus, which is done once
        self._studio: Studio | None = None  # and joined to the store, which is tried at every use until it succeeds
        self._trouble: str | None = None

    @property
    def studio(self) -> "Studio":
        with self._lock:
            if self._studio is None:
                try:
                    self._modules = self._modules or self._build_studio()
                    self._modules.join()
                except ConfigInvalid:
                    raise
                except Exception as error:
                    self._trouble = describe(error)
                    raise
                self._studio, self._trouble = self._modules, None
            return self._studio

    def trouble(self) -> str | None:
        """Why the studio could not be built when it was last wanted, if it still cannot be."""
        if self._trouble is not None:
            with suppress(Exception):
                _ = self.studio
        return None if self._trouble is None else f"the studio could not be built: {self._trouble}"

    def has_work(self) -> bool:
        """Whether there is anything to do for a studio, here or by another process."""
        return self._studio is not None or self._ground.db.read(any_task)

    def _build_studio(self) -> "Studio":
        if lacking := missing():
            detail = f"not installed: {', '.join(lacking)}"
            raise ConfigInvalid("s_extra_missing", detail, place="studio", advice="pip install 'patra[studio]'")
        from patra.studio.hub import Limits  # noqa: PLC0415
        from patra.studio.pipeline import Studio  # noqa: PLC0415
        from patra.studio.profiles import load_profiles  # noqa: PLC0415
        from patra.studio.storage.artifacts import ArtifactStore  # noqa: PLC0415
        from patra.studio.storage.object_storage import ObjectStorage  # noqa: PLC0415

        settings = self._ground.settings.studio
        url = resolve(settings.artifacts_url, "studio.artifacts_url") if settings.artifacts_url else ""
        return Studio(
            self._ground.db,
            self._ground.engine(BusEngine).bus,
            ArtifactStore(Path(settings.folder), ObjectStorage(url) if url else None),
            load_profiles(settings.profiles, self._ground.settings.egress.networks),
            limits=Limits(lease=round(settings.lease_seconds * SECOND), max_attempts=settings.max_attempts),
            max_characters=settings.max_characters,
            workers=settings.workers,
            job_seconds=settings.job_seconds,
        )

    def leave(self) -> None:
        if self._studio is not None:
            self._studio.leave()


def join(ground: Context) -> BuiltComponent:
    """Promise the studio; its loops exist where its libraries do."""
    engine = StudioEngine(ground)
    return BuiltComponent(
        engine=engine,
        loops=[] if missing() else _loops(engine, ground.settings.studio.workers),
        checks=[lambda: _check(ground.settings.studio)],
        stop_intake=engine.leave,
        trouble=engine.trouble,
    )


def missing() -> list[str]:
    """The libraries of the extra that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def _loops(engine: StudioEngine, workers: int) -> list[Loop]:
    """Each loop finds the studio when it takes a turn, not now; without a chapter there is none to be built."""

    def turn(duty: Callable[["Studio"], Any]) -> Callable[[], Any]:
        return lambda: duty(engine.studio) if engine.has_work() else 0

    def desk(kind: str, number: int) -> Callable[["Studio"], Any]:
        return lambda studio: [d for d in studio.desks if d.worker_type == kind][number].run_once()

    duties: dict[str, Callable[[Studio], Any]] = {
        "studio.dispatch": lambda studio: studio.dispatch(),
        "studio.composer": lambda studio: studio.composer.run_once(),
        **{f"studio.{kind}": desk(kind, 0) for kind in ("llm", "audio", "lipsync")},
        **{f"studio.video.{n + 1}": desk("video", n) for n in range(workers)},
    }
    return [Loop(name=name, run_once=turn(duty), every=POLL_INTERVAL) for name, duty in duties.items()]


def _check(settings: StudioSettings) -> Check:
    if lacking := missing():
        found, advice = f"films cannot be made: {', '.join(lacking)} not installed", "pip install 'patra[studio]'"
        return Check(name="studio", health=Health.OFF, found=found, advice=advice)
    from patra.studio.film.ffmpeg import executable  # noqa: PLC0415
    from patra.studio.profiles import Engine, load_profiles  # noqa: PLC0415

    try:
        for name, profile in load_profiles(settings.profiles).items():
            resolve(profile.api_key, f"studio.profiles: {name}: api_key")
    except ConfigInvalid as error:
        found = f"{error.place}: {error.code}: {error.detail}"
        return Check(name="studio", health=Health.BROKEN, found=found, advice=error.advice)
    voices = [profile for profile in load_profiles(settings.profiles).values() if profile.engine is Engine.PIPER]
    if silent := [f"{one.profile_id}: {words}" for one in voices if (words := _silence(one))]:
        found = f"films are made with the embedded voice; {'; '.join(silent)}"
        advice = "install Piper and put the two files of the voice where studio.profiles names them"
        return Check(name="studio", health=Health.WARNING, found=found, advice=advice)
    speaks = f"; {', '.join(one.profile_id for one in voices)} speaks" if voices else ""
    return Check(name="studio", health=Health.OK, found=f"films are made here with {Path(executable()).name}{speaks}")


def _silence(profile: "Profile") -> str:
    """Why a neural voice of this machine does not speak; nothing where it does. It says one word to find out."""
    from patra.studio.voice.piper import speak_to  # noqa: PLC0415

    if words := profile.trouble():
        return words
    with tempfile.TemporaryDirectory(prefix="patra-voice-") as folder:
        try:
            speak_to(Path(folder) / "word.wav", "Yes.", profile.piper_voice())
        except PatraError as error:
            return error.detail
    return ""
