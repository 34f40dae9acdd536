"""Settings and common ground go in; the studio, its duties as loops and its check come out.

The studio is built when it is first used: its libraries (numpy, Pillow, ffmpeg) are an extra, and a process that
makes no
films does not pay for them.
"""

import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.app.references import resolve
from patra.app.settings import StudioSettings
from patra.bus.runtime import BusEngine
from patra.kernel.clock import SECOND
from patra.kernel.errors import ConfigInvalid
from patra.studio.store import any_task

if TYPE_CHECKING:
    from patra.studio.pipeline import Studio

NEEDED = ("numpy", "PIL", "imageio_ffmpeg", "espeakng_loader", "zhplot")
EVERY = SECOND // 4


class StudioEngine:
    """The studio of this process, built when it is first asked for."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._lock = threading.Lock()
        self._studio: Studio | None = None

    @property
    def studio(self) -> "Studio":
        with self._lock:
            if self._studio is None:
                self._studio = self._built()
            return self._studio

    def wanted(self) -> bool:
        """Whether there is anything to do for a studio, here or by another process."""
        return self._studio is not None or self._ground.db.read(any_task)

    def _built(self) -> "Studio":
        if lacking := missing():
            detail = f"not installed: {', '.join(lacking)}"
            raise ConfigInvalid("s_extra_missing", detail, place="studio", advice="pip install 'patra[studio]'")
        from patra.studio.artifacts import ArtifactStore  # noqa: PLC0415
        from patra.studio.hub import Limits  # noqa: PLC0415
        from patra.studio.pipeline import Studio  # noqa: PLC0415
        from patra.studio.profiles import load_profiles  # noqa: PLC0415
        from patra.studio.remote import ObjectStorage  # noqa: PLC0415

        settings = self._ground.settings.studio
        url = resolve(settings.artifacts_url, "studio.artifacts_url") if settings.artifacts_url else ""
        built = Studio(
            self._ground.db,
            self._ground.engine(BusEngine).bus,
            ArtifactStore(Path(settings.folder), ObjectStorage(url) if url else None),
            load_profiles(settings.profiles),
            limits=Limits(lease=round(settings.lease_seconds * SECOND), max_attempts=settings.max_attempts),
            max_characters=settings.max_characters,
            workers=settings.workers,
            job_seconds=settings.job_seconds,
        )
        built.join()
        return built

    def leave(self) -> None:
        if self._studio is not None:
            self._studio.leave()


def join(ground: Ground) -> Joined:
    """Promise the studio; its loops exist where its libraries do."""
    engine = StudioEngine(ground)
    return Joined(
        engine=engine,
        loops=[] if missing() else _loops(engine, ground.settings.studio.workers),
        checks=[lambda: _check(ground.settings.studio)],
        stop_intake=engine.leave,
    )


def missing() -> list[str]:
    """The libraries of the extra that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def _loops(engine: StudioEngine, workers: int) -> list[Loop]:
    """Each loop finds the studio when it takes a turn, not now; without a chapter there is none to be built."""

    def turn(duty: Callable[["Studio"], Any]) -> Callable[[], Any]:
        return lambda: duty(engine.studio) if engine.wanted() else 0

    def desk(kind: str, number: int) -> Callable[["Studio"], Any]:
        return lambda studio: [d for d in studio.desks if d.worker_type == kind][number].run_once()

    duties: dict[str, Callable[[Studio], Any]] = {
        "studio.dispatch": lambda studio: studio.dispatch(),
        "studio.composer": lambda studio: studio.composer.run_once(),
        **{f"studio.{kind}": desk(kind, 0) for kind in ("llm", "audio", "lipsync")},
        **{f"studio.video.{n + 1}": desk("video", n) for n in range(workers)},
    }
    return [Loop(name=name, run_once=turn(duty), every=EVERY) for name, duty in duties.items()]


def _check(settings: StudioSettings) -> Check:
    if lacking := missing():
        found, advice = f"films cannot be made: {', '.join(lacking)} not installed", "pip install 'patra[studio]'"
        return Check(name="studio", health=Health.OFF, found=found, advice=advice)
    from patra.studio.film.ffmpeg import executable  # noqa: PLC0415
    from patra.studio.profiles import load_profiles  # noqa: PLC0415

    try:
        for name, profile in load_profiles(settings.profiles).items():
            resolve(profile.api_key, f"studio.profiles: {name}: api_key")
    except ConfigInvalid as error:
        found = f"{error.place}: {error.code}: {error.detail}"
        return Check(name="studio", health=Health.BROKEN, found=found, advice=error.advice)
    return Check(name="studio", health=Health.OK, found=f"films are made here with {Path(executable()).name}")
