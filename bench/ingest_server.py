"""A provider without limits: Crossref-sized records on pages rendered beforehand, from a process of its own.

    python -m bench.ingest_server RECORDS PAGE_SIZE LATENCY_MS [WINDOWS]

Writes its port on the first line. `GET /works?cursor=TOKEN` answers with a page and the token of the next; `*` is the first,
the last page has none. Each second has one record. With WINDOWS the list is cut into so many of equal length, and `from`
(seconds since 1970) says which is asked for.
"""

import random
import socket
import sys
import threading
import time
from typing import Any

import msgspec

WORDS = [
    "analysis",
    "of",
    "the",
    "effects",
    "on",
    "a",
    "method",
    "for",
    "cell",
    "model",
    "growth",
    "during",
    "early",
    "treatment",
    "with",
    "novel",
    "drug",
    "response",
    "in",
    "patients",
    "study",
    "under",
    "stress",
    "and",
    "protein",
    "expression",
    "data",
    "from",
    "large",
    "clinical",
    "trial",
    "networks",
    "using",
    "deep",
    "learning",
    "approach",
]
NAMES = [
    "Li",
    "Wang",
    "Smith",
    "Garcia",
    "Müller",
    "Rossi",
    "Tanaka",
    "Silva",
    "Kim",
    "Novak",
    "Okafor",
    "Singh",
    "Dubois",
    "Jensen",
    "Ivanova",
    "Haddad",
]
EPOCH = 1_767_225_600  # 2026-01-01


def text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words)).capitalize()


def item(number: int) -> dict[str, Any]:
    """One work, as Crossref writes them; about 2 KB, as those of its API are in the mean."""
    chance = random.Random(number)
    second = EPOCH + number
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
    year, month = 1990 + number % 36, 1 + number % 12
    doi = f"10.5000/bench.{number:07}"
    date = {"date-parts": [[year, month, 1 + number % 28]], "date-time": stamp, "timestamp": second * 1000}
    authors = [
        {
            "given": chance.choice("ABCDEFGHIJKLM") + ".",
            "family": chance.choice(NAMES),
            "sequence": "first" if n == 0 else "additional",
            "affiliation": [{"name": f"Institute of {text(chance, 3)}"}] if n % 2 == 0 else [],
            **({"ORCID": f"http://orcid.org/0000-0002-{number % 10000:04}-{n:04}"} if n == 0 else {}),
        }
        for n in range(1 + number % 4)
    ]
    return {
        "indexed": date,
        "reference-count": number % 60,
        "publisher": "Bench Press",
        "issue": str(1 + number % 12),
        "license": [
            {
                "start": date,
                "content-version": "vor",
                "delay-in-days": 0,
                "URL": "https://creativecommons.org/licenses/by/4.0/",
            }
        ],
        "content-domain": {"domain": ["example.org"], "crossmark-restriction": False},
        "DOI": doi,
        "type": "journal-article",
        "created": date,
        "page": f"{number % 900}-{number % 900 + 12}",
        "source": "Crossref",
        "is-referenced-by-count": number % 17,
        "title": [text(chance, 12)],
        "abstract": f"<jats:p>{text(chance, 45)}</jats:p>" if number % 2 == 0 else None,
        "prefix": "10.5000",
        "volume": str(year - 1980),
        "author": authors,
        "member": "297",
        "container-title": ["Journal of Measured Things"],
        "language": "en",
        "link": [
            {
                "URL": f"https://example.org/content/pdf/{doi}.pdf",
                "content-type": "application/pdf",
                "content-version": "vor",
                "intended-application": "similarity-checking",
            }
        ],
        "deposited": date,
        "score": 1.0,
        "resource": {"primary": {"URL": f"https://example.org/articles/{doi}"}},
        "issued": {"date-parts": [[year, month]]},
        "ISSN": ["1234-5678"],
        "issn-type": [{"type": "electronic", "value": "1234-5678"}],
        "references-count": number % 60,
        "URL": f"https://doi.org/{doi}",
        "subject": ["Measurement", "Instrumentation"],
    }


def width(records: int, windows: int) -> int:
    """Seconds of a window: whole minutes."""
    return -(-records // windows // 60) * 60


def pages(first: int, last: int, size: int) -> list[bytes]:
    """The list of some records, as whole HTTP answers, page by page."""
    encode = msgspec.json.Encoder().encode
    out: list[bytes] = []
    for start in range(first, last, size) or [first]:  # a window without records has one empty page
        items = [item(number) for number in range(start, min(start + size, last))]
        following = f"p{len(out) + 1}" if start + size < last else None
        body = encode(
            {
                "status": "ok",
                "message-type": "work-list",
                "message": {
                    "total-results": max(last - first, 0),
                    "items-per-page": size,
                    "next-cursor": following,
                    "items": items,
                },
            }
        )
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        out.append(head.encode() + body)
    return out


def serve(windows: list[list[bytes]], seconds: int, latency: float) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=talk, args=(connection, windows, seconds, latency), daemon=True).start()


def talk(connection: socket.socket, windows: list[list[bytes]], seconds: int, latency: float) -> None:
    waiting = b""
    with connection:
        while True:
            while b"\r\n\r\n" not in waiting:
                received = connection.recv(65_536)
                if not received:
                    return
                waiting += received
            head, _, waiting = waiting.partition(b"\r\n\r\n")
            _, _, query = head.split(b" ", 2)[1].decode().partition("?")
            asked = dict(part.partition("=")[::2] for part in query.split("&"))
            cursor = asked.get("cursor", "*")
            page = int(cursor[1:]) if cursor.startswith("p") else 0
            window = (int(asked["from"]) - EPOCH) // seconds if "from" in asked else 0
            if latency:
                time.sleep(latency)
            connection.sendall(windows[window][page])


if __name__ == "__main__":
    RECORDS, SIZE, LATENCY, WINDOWS = (*map(int, sys.argv[1:]), 1)[:4]
    WIDTH = width(RECORDS, WINDOWS)
    LISTS = [pages(n * WIDTH, min((n + 1) * WIDTH, RECORDS), SIZE) for n in range(WINDOWS)]
    serve(LISTS, WIDTH, LATENCY / 1000)
