"""A Patra with one loop that never ends its turn, run as a program by `test_process`."""

import sys
import threading

from patra.app.component import BuiltComponent, Component
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.loops import Loop
from patra.app.wiring import COMPONENTS
from patra.cli.serving.process import run
from patra.kernel.clock import HOUR
from patra.kernel.telemetry import get_logger


def stuck() -> None:
    get_logger().info("stuck")
    threading.Event().wait()


if __name__ == "__main__":
    loop = Loop(name="example.stuck", run_once=stuck, every=HOUR)
    never = threading.Event().wait
    if sys.argv[2:] == ["release"]:
        part = Component(
            name="example", join=lambda ground: BuiltComponent(engine=object(), release=lambda: bool(never()))
        )
    else:
        part = Component(name="example", join=lambda ground: BuiltComponent(engine=object(), loops=[loop]))
    settings = Settings(
        store=StoreSettings(url="sqlite:///:memory:"), web=WebSettings(port=0, shutdown_seconds=float(sys.argv[1]))
    )
    sys.exit(run(settings, web=False, loops=(), parts=(*COMPONENTS, part)))
