"""Films from the example chapters, cold: wall time beside the film's own length, and the memory of all processes.

    ./dev bench studio [--quality draft] [--only TEXT] [--times 4]

Each film is made by the command line itself, `patra studio make`, on a new store and an empty artifact folder, so nothing
is reused. Memory is the sum over the command and all its children (ffmpeg): their proportional set size, which counts
a shared page once, looked at twenty times a second; and beside it the sum of their resident sets, which counts shared
pages once a process. `--times` also makes the English chapter so many times as long, to see that memory does not grow.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from bench.harness import BUILD, facts

EXAMPLES = Path("docs/examples")
LOOK_EVERY = 0.05  # seconds


class Film(msgspec.Struct, frozen=True, kw_only=True):
    """One film as it was made."""

    name: str
    quality: str
    characters: int
    shots: int
    film_seconds: float
    wall_seconds: float
    cpu_seconds: float
    peak_pss_mb: float
    peak_rss_mb: float
    bytes: int

    @property
    def ratio(self) -> float:
        return self.wall_seconds / self.film_seconds


def made(name: str, text: str, quality: str) -> Film:
    with tempfile.TemporaryDirectory(prefix="patra-bench-studio-") as where:
        folder = Path(where)
        (folder / "chapter.txt").write_text(text, "utf-8")
        words = [sys.executable, "-m", "patra", "studio", "make", "chapter.txt", "-o", "film.mp4", "--json"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen([*words, "--quality", quality], cwd=folder, stdout=said, env=_environment())
            pss, rss = _watched(process)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise SystemExit(f"{name}: patra ended with {process.returncode}")
        seen = msgspec.json.decode((folder / "said").read_bytes())
        return Film(
            name=name,
            quality=quality,
            characters=len(text),
            shots=seen["shots"],
            film_seconds=seen["film_ms"] / 1000,
            wall_seconds=wall,
            cpu_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            peak_pss_mb=pss / 1024,
            peak_rss_mb=rss / 1024,
            bytes=(folder / "film.mp4").stat().st_size,
        )


def longer(text: str, times: int) -> str:
    """A chapter repeated so many times, each time with its paragraphs in another order and a line of its own in each."""
    title, *paragraphs = [part for part in text.split("\n\n") if part.strip()]
    told = [title]
    for turn in range(times):
        order = paragraphs[turn:] + paragraphs[:turn]
        told += [f"{part.strip()} This was told for the {turn + 1}. time, and it was true." for part in order]
    return "\n\n".join(told)


def _environment() -> dict[str, str]:
    """A store and a folder of its own, whatever this shell has set for Patra."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PATRA_")}


def _watched(process: "subprocess.Popen[bytes]") -> tuple[int, int]:
    """The highest sums of KiB (proportional, resident) over the process and all below it, until it ends."""
    pss = rss = 0
    while process.poll() is None:
        sums = [_memory(pid) for pid in _family(process.pid)]
        pss, rss = max(pss, sum(p for p, _ in sums)), max(rss, sum(r for _, r in sums))
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY)
    return pss, rss


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        program = Path(f"/proc/{pid}/exe").readlink()
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                if Path(f"/proc/{child}/exe").readlink() != program:
                    yield from _family(int(child))


def _memory(pid: int) -> tuple[int, int]:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:])}
        return found.get("Pss", 0), found.get("Rss", 0)
    return 0, 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench studio", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quality", default="draft", choices=["draft", "standard", "high"])
    parser.add_argument("--only", default="", metavar="TEXT", help="only the chapters whose name contains it")
    parser.add_argument("--times", type=int, default=4, help="how often the long chapter repeats the English one")
    options = parser.parse_args(arguments)
    english = (EXAMPLES / "the-keeper.txt").read_text("utf-8")
    chapters = {
        "English": english,
        "Chinese": (EXAMPLES / "paper-boats.zh.txt").read_text("utf-8"),
        f"English, {options.times} times as long": longer(english, options.times),
    }
    known = facts()
    for key, value in known.items():
        print(f"{key:>10}  {value}")
    print(
        f"{'chapter':26} {'shots':>5} {'film s':>8} {'wall s':>8} {'of it':>6} {'CPU s':>7} {'PSS MB':>7} {'RSS MB':>7}"
    )
    films: list[Film] = []
    for name, text in chapters.items():
        if options.only not in name:
            continue
        film = made(name, text, options.quality)
        films.append(film)
        print(
            f"{name:26} {film.shots:5} {film.film_seconds:8.1f} {film.wall_seconds:8.1f} {film.ratio:6.0%} "
            f"{film.cpu_seconds:7.1f} {film.peak_pss_mb:7.0f} {film.peak_rss_mb:7.0f}",
            flush=True,
        )
    BUILD.mkdir(parents=True, exist_ok=True)
    target = BUILD / "studio.json"
    document = {"name": "studio", "facts": known, "films": films}
    target.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1))
    print(f"written to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
