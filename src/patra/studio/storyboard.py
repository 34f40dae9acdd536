"""Draws the storyboard of a chapter or a run as one HTML page: a still of each shot, and fields to change it (B6).

It shows what a film would be before anything is rendered. The page needs nothing but itself: stills are inside it, and
what is changed in its fields it writes as a file of edits, which `make` and `render` take.
"""

import base64
import io
import shlex
from typing import Any

import msgspec
from jinja2 import Environment

from patra.studio.film.quality import QUALITIES, shape_quality
from patra.studio.paint.frames import ShotFrames, render_still
from patra.studio.script.edits import KINDS, MAX_NARRATION_CHARACTERS, STAGING_VALUES
from patra.studio.script.plan import Plan
from patra.studio.script.shots import INSERTS, Shot
from patra.studio.views import shot_detail

STILL_WIDTH = {"16:9": 480, "1:1": 320, "9:16": 240}
CHOICES = {**STAGING_VALUES, "place": ["", *STAGING_VALUES["place"]], "subject": ["", *INSERTS]}
"""Fields with a list of values; the others are text."""

_PAGE = """<!doctype html>
<html lang="{{ language }}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ title }}: storyboard</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem 6rem; color: #222; background: #faf8f3 }
ol { list-style: none; padding: 0; display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)) }
li { background: #fff; border: 1px solid #ddd; border-radius: .5rem; overflow: hidden }
li.changed { border-color: #a34a28 }
img { display: block; max-width: 100%; margin: 0 auto } li > div { padding: .75rem 1rem }
p { margin: 0 0 .5rem } small { color: #666 }
label { display: grid; grid-template-columns: 6rem 1fr; gap: .5rem; margin: .3rem 0 } input, select, textarea { font: inherit; width: 100%; box-sizing: border-box }
input[type=checkbox] { width: auto; justify-self: start }
footer { position: fixed; inset: auto 0 0; background: #fff; border-top: 1px solid #ccc; padding: .75rem 1rem } footer[hidden] { display: none }
</style>
<h1>{{ title or "Untitled" }}</h1>
<p>{{ shots | length }} shots, about {{ seconds }} seconds, language {{ language }}. Open <em>Change</em> under a picture to edit its shot.</p>
<datalist id="people">{% for name in people %}<option>{{ name }}</option>{% endfor %}</datalist>
<ol>{% for shot in shots %}
<li id="{{ shot.shot_id }}"><img src="data:image/jpeg;base64,{{ stills[loop.index0] }}" alt="{{ shot.seen }}">
<div><p><strong>{{ loop.index }}</strong> {{ shot.narration }}</p><small>{{ shot.seen }}; {{ shot.seconds }} s{% for e in shot.edits %}; edited by {{ e.by }}{% endfor %}</small>{% if shot.doubts %}
<details><summary>{{ shot.certainty }} certain{% if shot.framing == "card" %}, so a card{% endif %}</summary><small>{{ shot.doubts | join("; ") }}</small></details>{% endif %}
<details><summary>Change</summary>
<label>said <textarea name="narration" rows="3" maxlength="{{ longest }}">{{ shot.narration }}</textarea></label>
{% for name, values in choices.items() %}<label>{{ name }} <select name="{{ name }}">{% if shot[name] not in values %}<option selected>{{ shot[name] }}</option>{% endif %}{% for v in values %}<option{% if v == shot[name] %} selected{% endif %}>{{ v }}</option>{% endfor %}</select></label>
{% endfor %}<label>people <input name="people" list="people" data-list value="{{ shot.people | join(', ') }}"></label>
<label>things <input name="things" data-list value="{{ shot.things | join(', ') }}"></label>
<label>lettering <input name="lettering" value="{{ shot.lettering }}"></label>
<label>seconds <input name="seconds" type="number" min="0" max="120" step="0.5" placeholder="as long as what is said"></label>
<label>again <input name="again" type="checkbox"></label></details></div></li>{% endfor %}
</ol>
<footer hidden><p><strong><span id="count"></span> changed.</strong> <a id="save" download="edits.json">Save edits.json</a>, then run <code>{{ command }}</code></p></footer>
<script>
const given = field => field.type === "checkbox" ? field.checked : field.value;
const was = new Map([...document.querySelectorAll("[name]")].map(field => [field, given(field)]));
document.addEventListener("input", () => {
  const edits = {};
  for (const [field, before] of was) {
    const now = given(field), shot = field.closest("li").id;
    if (now === before) continue;
    const list = now => now.split(/[,，、]/).map(one => one.trim()).filter(Boolean);
    (edits[shot] ??= {})[field.name] = "list" in field.dataset ? list(now) : field.type === "number" ? Number(now) : now;
  }
  for (const item of document.querySelectorAll("li")) item.classList.toggle("changed", item.id in edits);
  const count = Object.keys(edits).length;
  document.querySelector("footer").hidden = !count;
  document.querySelector("#count").textContent = count === 1 ? "One shot" : count + " shots";
  document.querySelector("#save").href = URL.createObjectURL(new Blob([JSON.stringify(edits, null, 1)], {type: "application/json"}));
});
</script></html>
"""  # noqa: E501  a page


def storyboard(plan: Plan, form: str = "16:9", run_id: str = "", chapter: str = "CHAPTER.txt") -> str:
    """The page of a plan: of a run, or of a chapter that is not rendered yet."""
    shots: list[dict[str, Any]] = [msgspec.to_builtins(shot_detail(plan, shot)) for shot in plan.shots]
    render = f"patra studio render {run_id}" if run_id else f"patra studio make {shlex.quote(chapter)}"
    page = Environment(autoescape=True).from_string(_PAGE)
    return page.render(
        title=plan.title,
        language=plan.language,
        shots=shots,
        stills=[still(shot, form, plan.language) for shot in plan.shots],
        seconds=round(sum(shot.estimated_ms for shot in plan.shots) / 1000),
        choices=CHOICES,
        people=[*dict.fromkeys(name for shot in plan.shots for name in shot.characters if name), *KINDS],
        longest=MAX_NARRATION_CHARACTERS,
        command=f"{render} --edits edits.json -o film.mp4",
    )


def still(shot: Shot, form: str, language: str) -> str:
    """The middle of a shot as a small JPEG, in base64."""
    quality = shape_quality(QUALITIES["draft"], form)
    width = STILL_WIDTH[form]
    frames = ShotFrames(
        picture=shot.picture,
        before=None,
        cut="cut",
        leaves="cut",
        title="",
        language=language,
        frames=3,
        fps=1,
        width=width,
        height=round(width * quality.height / quality.width / 2) * 2,
        smooth=1.2,
    )
    out = io.BytesIO()
    render_still(frames).save(out, "JPEG", quality=82)
    return base64.b64encode(out.getvalue()).decode()
