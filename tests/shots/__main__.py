"""`./dev shots [URL]`: pictures of every view of the console over the demonstration's data, for the documentation.

Without an address it starts `patra demo` and waits until its films are made. Every view is taken in light, in dark and
at the width of a phone, and `docs/how-to/console-pictures.md` shows them all. Light ones are 1200 px wide and exact but
for a palette of 128 colours; the others are smaller, so that all of them together stay near 4 MB.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import urllib3
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parents[2] / "docs" / "images"
VIEWS = {
    "overview": "/",
    "story": "/story?key=resp-shop-00027%7Cra-1",
    "story-paper": "/story?key=10.5555%2Fboats.0",
    "find": "/story",
    "story-unknown": "/story?key=no-such-key",
    "alerts": "/alerts",
    "events": "/attribution/events",
    "event-chosen": "/attribution/events?before={behind}&at={decision}",
    "event": "/attribution/event?batch=shop-b000&event=shop-00001-ad_filled",
    "closures": "/attribution/closures",
    "closure": "/attribution/closure?key=resp-shop-00027%7Cra-1",
    "settlement": "/attribution/settlement",
    "statements": "/attribution/statements",
    "statement": "/attribution/statement?app=shop&period={period}",
    "delivery": "/attribution/archive",
    "rejects": "/attribution/rejects",
    "apps": "/attribution/apps",
    "ingest": "/ingest",
    "source": "/ingest/source/pubmed",
    "plans": "/ingest/plans",
    "plan": "/ingest/plan/{plan}",
    "task": "/ingest/task/{task}",
    "run": "/ingest/run/{run}",
    "batch": "/ingest/batch/{run}/1",
    "tasks": "/ingest/tasks",
    "coverage": "/ingest/coverage?source=pubmed",
    "cursors": "/ingest/cursors",
    "cursor": "/ingest/cursor?source=pubmed&op=BACKFILL&ns={namespace}",
    "rate": "/ingest/rate",
    "quarantine": "/ingest/quarantine",
    "errors": "/ingest/errors",
    "schedules": "/ingest/schedules",
    "bus": "/bus",
    "groups": "/bus/groups",
    "group": "/bus/group/bookkeeping",
    "types": "/bus/types",
    "type": "/bus/type/order.placed",
    "dead-letters": "/bus/dead-letters",
    "dead-letter": "/bus/dead-letter/bookkeeping/{letter}",
    "replay": "/confirm/bus.replay_all?group=bookkeeping",
    "acts": "/bus/acts",
    "refusals": "/bus/refusals",
    "webhooks": "/bus/webhooks",
    "studio": "/studio",
    "new-film": "/studio/new",
    "film": "/studio/run/{film}",
    "loops": "/loops",
    "outbox": "/outbox",
    "audit": "/audit",
    "settings": "/settings",
    "doctor": "/doctor",
    "reasons": "/reasons",
    "keys": "/keys",
}
GALLERY = FOLDER.parent / "how-to" / "console-pictures.md"
ABOUT = """\
# The console in pictures

Every view of [the console](use-the-console.md) over the data of `patra demo`, in light, in dark and as wide as a phone; taken by
`./dev shots`.
"""
FORMS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
}
WIDTHS_PX = {"light": 1200, "dark": 800, "phone": 300}
LOSSY_QUALITY = {"dark": 60, "phone": 50}
PALETTE_COLOURS = 128
EXACT_COLOURS = 40
PHOTOGRAPHS = {"film": 82, "studio": 82}
"""Views with frames of a film, and the quality that they are kept with: a palette would take their colours."""
WAIT_S = 600.0


@contextmanager
def demonstration() -> Iterator[str]:
    """A running demonstration whose films are made; gives its address."""
    command = [sys.executable, "-m", "patra", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = ""
            for line in process.stdout:
                found = re.search(r"Open (\S+)/console/", line)
                url = found[1] if found else url
                if "It goes on producing" in line:
                    break
            wait_for_films(url)
            yield url
        finally:
            process.terminate()


def wait_for_films(url: str) -> None:
    until = time.monotonic() + WAIT_S
    http = urllib3.PoolManager()
    while time.monotonic() < until:
        stages = {run["stage"] for run in http.request("GET", f"{url}/studio/runs").json()["runs"]}
        if stages <= {"completed", "failed", "cancelled"}:
            return
        time.sleep(2)
    raise TimeoutError(f"the films were not made within {WAIT_S:.0f} s")


def names_of(url: str) -> dict[str, str]:
    """Keys of the demonstration that its views need."""
    http = urllib3.PoolManager()

    def get(path: str) -> Any:
        return http.request("GET", url + path).json()

    plan = get("/ingest/plans?source=pubmed&limit=50")["plans"][-1]["plan"]
    task = get(f"/ingest/tasks?plan={plan}")["tasks"][0]["task"]
    letters = get("/bus/dead-letters?group=bookkeeping")["dead_letters"]
    films = get("/studio/runs")["runs"]
    (late,) = get("/attribution/events?batchId=shop-late&eventId=shop-00027-impression")["decisions"]
    return {
        "decision": str(late["number"]),
        "behind": str(late["number"] + 1),
        "period": get("/attribution/statements")["statements"][0]["period"],
        "namespace": quote(get("/ingest/cursors?source=pubmed")["rows"][0]["namespace_key"], safe=""),
        "plan": plan,
        "task": task,
        "run": f"{task}.r1",
        "letter": letters[-1]["event_id"],
        "film": films[-1]["run_id"],
    }


def take(page: Page, url: str, name: str, form: str, known: dict[str, str], folder: Path) -> None:
    path = VIEWS[name].format_map(known)
    answer = page.goto(f"{url}/console{path}", wait_until="load")
    if answer is None or answer.status != 200:
        print(f"{name}: {path} answered {answer.status if answer else 'nothing'}", file=sys.stderr)
    page.evaluate("document.fonts.ready")
    if page.locator("#film").count():  # a picture of the film, not of its first black frame
        page.evaluate("() => { document.querySelector('#film').preload = 'auto'; }")
        page.wait_for_function(
            "() => { const f = document.querySelector('#film'); return f.readyState === 4 && !f.seeking; }"
        )
    page.wait_for_function(
        "() => [...document.images].every((one) => one.complete || one.getBoundingClientRect().top > innerHeight)"
    )
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    width = WIDTHS_PX[form]
    if picture.width > width:
        picture = picture.resize((width, picture.height * width // picture.width), Image.Resampling.LANCZOS)
    target = folder / file_name(name, form)
    quality = LOSSY_QUALITY.get(form) or PHOTOGRAPHS.get(name)
    if quality is not None:
        picture.save(target, "WEBP", quality=quality, method=6)
        return
    few_colours(picture).convert("RGB").save(target, "WEBP", lossless=True, method=6, quality=80)


def file_name(name: str, form: str) -> str:
    return f"console-{name}{'' if form == 'light' else f'-{form}'}.webp"


def gallery() -> str:
    """A page with every picture."""
    parts = [ABOUT]
    for name, path in VIEWS.items():
        title = name.replace("-", " ").capitalize()
        light, dark, phone = (f"../images/{file_name(name, form)}" for form in FORMS)
        parts.append(
            f"## {title}\n\n`/console{path}`\n\n![{title}]({light})\n\n"
            f"![{title}, dark]({dark}) ![{title}, on a phone]({phone})\n"
        )
    return "\n".join(parts)


def few_colours(picture: Image.Image) -> Image.Image:
    """The colours that are there most, each exactly as it is, so that grounds keep their tone; then a choice of the rest."""
    found = picture.getcolors(maxcolors=picture.width * picture.height) or []
    flat = [
        part for _, colour in sorted(found, reverse=True)[:EXACT_COLOURS] for part in cast("tuple[int, ...]", colour)
    ]
    rest = picture.quantize(PALETTE_COLOURS - EXACT_COLOURS, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    flat += rest[: 3 * (PALETTE_COLOURS - EXACT_COLOURS)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(flat + flat[:3] * (256 - len(flat) // 3))
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def first_view_ms(browser: Browser, url: str) -> int:
    """How long the overview takes in a browser that knows none of its files."""
    page = browser.new_context().new_page()
    page.goto(f"{url}/console/", wait_until="load")
    timing = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"
    found = round(page.evaluate(timing))
    page.context.close()
    return found


@contextmanager
def chinese_too() -> Iterator[dict[str, str | float | bool]]:
    """The environment of a browser that has letters for the Chinese film, whatever fonts the machine has."""
    found = find_spec("zhplot")
    fonts = Path(found.origin).parent / "fonts" if found and found.origin else Path("/usr/share/fonts")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "fonts.conf"
        include = "<include ignore_missing='yes'>/etc/fonts/fonts.conf</include>"
        config.write_text(f"<fontconfig>{include}<dir>{fonts}</dir></fontconfig>", "utf-8")
        yield {**os.environ, "FONTCONFIG_FILE": str(config)}


def shoot(url: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = names_of(url)
    with sync_playwright() as playwright, chinese_too() as environment:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"], env=environment
        )
        print(f"first view: {first_view_ms(browser, url)} ms until its content is painted")
        for form, settings in FORMS.items():
            page = browser.new_context(**settings, reduced_motion="reduce").new_page()
            for name in VIEWS:
                take(page, url, name, form, known, folder)
            page.context.close()
        browser.close()
    taken = list(folder.glob("console-*.webp"))
    print(f"{len(taken)} pictures, {sum(one.stat().st_size for one in taken) / 1e6:.2f} MB, in {folder}")


def main(arguments: list[str]) -> None:
    match arguments:
        case []:
            with demonstration() as address:
                shoot(address, FOLDER)
        case [address]:
            shoot(address, FOLDER)
        case [address, folder, *_]:
            shoot(address, Path(folder))
            return
    GALLERY.write_text(gallery(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
