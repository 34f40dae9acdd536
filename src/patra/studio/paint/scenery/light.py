"""What rooms share: where the floor begins, and the light of the hour."""

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour

FLOOR = 0.74
WOOD: Colour = (112, 76, 52)


def light_colour(c: Canvas, colour: Colour) -> Colour:
    """A colour of the room in its hour: by lamp after dark, by the window by day."""
    p = c.palette
    if p.dark:
        return mix(scale_colour(colour, 0.52), (92, 56, 34), 0.22)
    return mix(scale_colour(colour, 1.1), p.horizon, 0.24)
