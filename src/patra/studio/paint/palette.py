"""Turns time of day, weather and mood into the colours of a picture (B6)."""

import colorsys
from typing import TypeAlias

import msgspec

Colour: TypeAlias = tuple[int, int, int]


class Palette(msgspec.Struct, frozen=True, kw_only=True):
    """Sky from top to horizon, the light and its source, land from far to near, and the warm light of windows."""

    top: Colour
    middle: Colour
    horizon: Colour
    near: Colour
    light: Colour
    window: Colour = (255, 206, 120)
    dark: bool = False  # lamps are lit
    haze: float = 0.0  # how soon things fade into the distance

    def land(self, nearness: float) -> Colour:
        """The colour of land at a distance: 0 is the horizon, 1 is before our feet."""
        reach = max(0.0, min(1.0, nearness)) ** (1.0 + self.haze)
        return mix(mix(self.horizon, self.near, 0.22), self.near, reach)

    def water(self, nearness: float) -> Colour:
        return mix(mix(self.horizon, self.middle, 0.35), mix(self.top, self.near, 0.45), nearness)


_TIMES = {
    "dawn": Palette(
        top=(96, 112, 164), middle=(216, 162, 172), horizon=(255, 216, 178), near=(54, 54, 82), light=(255, 232, 196)
    ),
    "morning": Palette(
        top=(104, 164, 208), middle=(172, 210, 226), horizon=(252, 238, 212), near=(44, 84, 82), light=(255, 246, 220)
    ),
    "day": Palette(
        top=(70, 138, 196), middle=(142, 194, 222), horizon=(230, 240, 232), near=(44, 92, 70), light=(255, 250, 232)
    ),
    "dusk": Palette(
        top=(56, 50, 100),
        middle=(186, 92, 108),
        horizon=(252, 176, 110),
        near=(38, 30, 58),
        light=(255, 214, 150),
        dark=True,
    ),
    "night": Palette(
        top=(9, 14, 38), middle=(22, 36, 76), horizon=(66, 90, 132), near=(7, 11, 27), light=(226, 232, 246), dark=True
    ),
}
_WEATHER = {  # towards a colour, how far; extra haze
    "rain": ((104, 114, 130), 0.46, 0.7),
    "storm": ((58, 62, 78), 0.6, 0.6),
    "snow": ((202, 210, 222), 0.36, 0.9),
    "fog": ((176, 182, 188), 0.44, 1.6),
    "wind": ((150, 160, 168), 0.12, 0.2),
}
_MOOD = {  # hue towards a colour, how far, saturation, brightness
    "joyful": ((255, 214, 130), 0.06, 1.14, 1.05),
    "sad": ((84, 104, 142), 0.16, 0.72, 0.92),
    "tense": ((96, 40, 44), 0.14, 0.92, 0.84),
    "mysterious": ((62, 70, 122), 0.17, 0.88, 0.88),
    "warm": ((255, 180, 104), 0.10, 1.06, 1.02),
}


def palette_for(time: str, weather: str, mood: str) -> Palette:
    base = _TIMES[time if time in _TIMES else "day"]
    toward, far, haze = _WEATHER.get(weather, ((0, 0, 0), 0.0, 0.0))
    if base.dark:  # weather at night is dark weather
        toward = scale_colour(toward, 0.45 if time == "night" else 0.72)
    tint, strength, saturation, brightness = _MOOD.get(mood, ((0, 0, 0), 0.0, 1.0, 1.0))

    def daylight_colour(colour: Colour, weight: float = 1.0) -> Colour:
        return tone_colour(mix(mix(colour, toward, far * weight), tint, strength), saturation, brightness)

    return Palette(
        top=daylight_colour(base.top),
        middle=daylight_colour(base.middle),
        horizon=daylight_colour(base.horizon, 0.8),
        near=daylight_colour(base.near, 0.5),
        light=mix(base.light, toward, far * 0.4),
        dark=base.dark or weather == "storm",
        haze=haze,
    )


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """`share` of the other."""
    return tuple(round(a + (b - a) * share) for a, b in zip(one, other, strict=True))  # type: ignore[return-value]


def scale_colour(colour: Colour, factor: float) -> Colour:
    return tuple(max(0, min(255, round(c * factor))) for c in colour)  # type: ignore[return-value]


def tone_colour(colour: Colour, saturation: float, brightness: float) -> Colour:
    hue, light, strength = colorsys.rgb_to_hls(*(c / 255 for c in colour))
    made = colorsys.hls_to_rgb(hue, min(1, light * brightness), min(1, strength * saturation))
    return tuple(round(c * 255) for c in made)  # type: ignore[return-value]


def hue_colour(hue: float, saturation: float, lightness: float) -> Colour:
    """A colour by hue (0 to 1), saturation and lightness."""
    return tuple(round(c * 255) for c in colorsys.hls_to_rgb(hue % 1, lightness, saturation))  # type: ignore[return-value]
