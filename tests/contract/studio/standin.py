"""A model server that stands in for real ones: OpenAI-compatible chat and speech, and an endpoint for pictures.

What it answers is said by the test, request by request: a status to fail with, or nothing for the real answer.
"""

import io
import json
import tempfile
import threading
import wave
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from PIL import Image

from patra.studio.film.ffmpeg import encode_clip
from patra.studio.film.quality import Quality


class StandIn:
    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, deque] = {}  # by path: statuses to give first, then the real answer
        self.always: dict[str, int | str] = {}  # by path: what is given for ever
        self.broken_prompts: set[str] = set()  # a picture whose prompt holds one of these is refused
        self.requests: list[tuple[str, dict, dict]] = []
        self.over = threading.Event()  # a request that is never answered waits for this

    def asked(self, path: str) -> list[dict]:
        return [body for where, body, _ in self.requests if where == path]


def tone(seconds: float) -> bytes:
    t = np.arange(int(16000 * seconds)) / 16000
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((np.sin(2 * np.pi * 220 * t) * 9000).astype("<i2").tobytes())
    return out.getvalue()


def painted(seed: int) -> bytes:
    out = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 255, (90, 160, 3), dtype=np.uint8)
    Image.fromarray(noise, "RGB").save(out, "PNG")
    return out.getvalue()


def moving(frames: int = 6) -> bytes:
    """A video of another size, rate and length than anyone asked for."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "moving.mp4"
        shape = Quality(name="x", width=128, height=96, fps=5, preset="ultrafast", crf=30, smooth=1.0, audio_kbit=64)
        encode_clip((bytes([40 * k, 90, 200 - 30 * k]) * (128 * 96) for k in range(frames)), shape, out)
        return out.read_bytes()


RUBBISH = np.random.default_rng(5).integers(0, 255, 5000, dtype=np.uint8).tobytes()


@contextmanager
def standing_in() -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, body, dict(self.headers)))
            waiting = state.answers.get(self.path)
            answer = waiting.popleft() if waiting else state.always.get(self.path, "ok")
            if any(word in str(body.get("prompt", "")) for word in state.broken_prompts):
                answer = 422
            if isinstance(answer, int):
                self._send(answer, "text/plain", b"told to fail")
            elif answer == "silence":
                state.over.wait()
                self.close_connection = True
            elif answer == "drip":
                self.send_response(200)
                self.send_header("Content-Type", "audio/wav")
                self.send_header("Content-Length", "100000")
                self.end_headers()
                while not state.over.wait(0.02) and self._dripped():
                    pass
                self.close_connection = True
            elif answer.startswith("rubbish "):
                self._send(200, answer.removeprefix("rubbish "), RUBBISH)
            elif answer == "video":
                self._send(200, "video/mp4", moving())
            elif answer == "garbage":
                self._send(200, "application/json", b"{ not json")
            elif answer == "cut off":
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", "100000")
                self.end_headers()
                self.wfile.write(b"\x89PNG")
                self.close_connection = True
            else:
                self._real(body)

        def _dripped(self) -> bool:
            try:
                self.wfile.write(b"R")
            except OSError:
                return False
            return True

        def _real(self, body: dict) -> None:
            match self.path:
                case "/v1/chat/completions":
                    staging = {"time": "night", "mood": "mysterious", "motifs": ["star"]}
                    message = {"choices": [{"message": {"role": "assistant", "content": json.dumps(staging)}}]}
                    self._send(200, "application/json", json.dumps(message).encode())
                case "/v1/audio/speech":
                    self._send(200, "audio/wav", tone(0.6 + 0.02 * len(body["input"])))
                case "/v1/generate":
                    self._send(200, "image/png", painted(body["seed"] % 1000))
                case _:
                    self._send(404, "text/plain", b"no such thing")

        def _send(self, status: int, media: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = StandIn(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
