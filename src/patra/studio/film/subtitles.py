"""Turns a timeline's cues into subtitles as SRT and WebVTT (soft) and ASS (burnt in) (C§2.6)."""

from collections.abc import Sequence

from patra.studio.film.timeline import Cue


def srt(cues: Sequence[Cue]) -> str:
    return "".join(
        f"{number}\n{_srt_time(cue.at)} --> {_srt_time(cue.end)}\n{cue.text}\n\n" for number, cue in enumerate(cues, 1)
    )


def vtt(cues: Sequence[Cue]) -> str:
    """WebVTT: the same times with a full stop, and text in which nothing is markup."""
    body = "".join(
        f"{_srt_time(cue.at).replace(',', '.')} --> {_srt_time(cue.end).replace(',', '.')}\n{_vtt_text(cue.text)}\n\n"
        for cue in cues
    )
    return f"WEBVTT\n\n{body}"


def _vtt_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str) -> str:
    """Text that no reader of SRT takes for markup: a `<` or a backslash is followed by a space of no width."""
    return text.replace("<", "<\u200b").replace("\\", "\\\u200b")


def ass(cues: Sequence[Cue], width: int, height: int) -> str:
    """Styled for burning in: our own font, a soft outline, clear of the narrator's corner; not what a card letters."""
    upright = width < height
    size = round(min(height * 0.05, width * 0.042))
    side = round(width * 0.05 if width <= height else height * 0.31)
    margin = round(height * (0.22 if upright else 0.3 if width == height else 0.045))  # above the narrator
    head = (
        "[Script Info]\nScriptType: v4.00+\nWrapStyle: 0\nScaledBorderAndShadow: yes\n"
        f"PlayResX: {width}\nPlayResY: {height}\n\n[V4+ Styles]\n"
        "Format: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, "
        "Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
        f"Style: film,Noto Sans SC,{size},&H00F4FAFF,&H50140A0C,&H00000000,0,1,{max(1, size // 14)},0,2,"
        f"{side},{side},{margin},1\n\n"
        "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    )
    return head + "".join(
        f"Dialogue: 0,{_ass_time(c.at)},{_ass_time(c.end)},film,,0,0,0,,{_ass_text(c.text)}\n"
        for c in cues
        if not c.lettered  # a card says it already
    )


def _srt_time(ms: int) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"


def _ass_time(ms: int) -> str:
    return f"{ms // 3_600_000}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000 // 10:02}"


def _ass_text(text: str) -> str:
    return text.replace("\\", "＼").replace("{", "（").replace("}", "）").replace("\n", "\\N")
