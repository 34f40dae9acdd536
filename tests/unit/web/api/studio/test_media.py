"""Captions for a player: the film's own WebVTT, or its SRT turned into it."""

from patra.studio.storage.artifacts import Artifact
from patra.web.api.studio.media import captions_of, web_vtt


def kept(kind: str, media_type: str) -> Artifact:
    return Artifact(artifact_id=media_type, kind=kind, uri="", media_type=media_type, sha256="", bytes=0)


FILM, SRT = kept("film", "video/mp4"), kept("subtitles", "application/x-subrip")
VTT, POSTER = kept("subtitles", "text/vtt"), kept("poster", "image/jpeg")


def test_the_captions_are_the_webvtt_of_the_film_wherever_it_stands() -> None:
    assert captions_of([FILM, SRT, VTT, POSTER]) is VTT
    assert captions_of([FILM, VTT, SRT, POSTER]) is VTT


def test_a_film_of_an_earlier_release_has_srt_only_and_a_film_without_either_has_no_captions() -> None:
    assert captions_of([FILM, SRT, POSTER]) is SRT
    assert captions_of([FILM, POSTER]) is None


def test_srt_becomes_webvtt_with_its_markup_as_text() -> None:
    srt = "1\n00:00:00,180 --> 00:00:01,500\nTom & <b>Ann\n\n"
    assert web_vtt(srt) == "WEBVTT\n\n1\n00:00:00.180 --> 00:00:01.500\nTom &amp; &lt;b>Ann\n\n"
