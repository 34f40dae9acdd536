import base64
import io
import re

from PIL import Image

from patra.studio.script.plan import make_plan
from patra.studio.storyboard import storyboard

CHAPTER = "Board <b>\n\nA battery is a device that stores energy.\n\nYou need flour, salt and water."


def test_the_page_has_a_still_and_the_words_of_each_shot_and_no_markup_of_the_text():
    plan = make_plan(CHAPTER)
    page = storyboard(plan, "1:1")
    stills = re.findall(r"base64,([^\"]+)", page)
    assert len(stills) == len(plan.shots) == 2
    assert Image.open(io.BytesIO(base64.b64decode(stills[0]))).size == (320, 320)
    assert all(shot.narration in page for shot in plan.shots)
    assert "<b>" not in page
