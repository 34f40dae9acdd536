"""Acts on loops and the outbox."""

from patra.kernel.safety.untrusted_text import integer_of
from patra.web.console.act import REASON, Act, Form, Input, back_to, nothing, rest_of, say
from patra.web.console.markup.formats import plural


def _numbers(form: Form) -> list[int]:
    return [number for word in form.get("seqs", "").split() if (number := integer_of(word)) is not None]


SYSTEM: dict[str, Act] = {
    "loop.wake": Act(
        template="/loops/{name}/wake",
        level=1,
        title="Wake the loop {name}",
        text="It takes its next turn now.",
        button="Wake",
        body=nothing,
        done=say("{name} takes its next turn now."),
        after=back_to,
    ),
    "outbox.requeue": Act(
        template="/outbox/{channel}/requeue",
        level=2,
        title="Send messages of {channel} again",
        text="They are tried again from the first attempt, the cause being gone.",
        button="Send again",
        body=lambda form: {
            "seqs": _numbers(form),
            "why": form.get("why", ""),
        },
        done=lambda form, answer: (
            f"{plural(answer['changed'], 'message')} of {form['channel']} will be sent again."
            + rest_of(_numbers(form), answer["changed"], "neither refused nor given up")
        ),
        after=back_to,
        inputs=(Input(name="seqs", label="Numbers", hint="one in a line", rows=3, required=True, mono=True), REASON),
        command="patra outbox requeue {channel} {seqs}",
    ),
}
