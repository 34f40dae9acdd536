"""Acts on loops and the outbox."""

from patra.kernel.safety.untrusted_text import integer_of
from patra.web.console.act import REASON, Act, Input, back_to, nothing, said
from patra.web.console.markup.formats import plural

SYSTEM: dict[str, Act] = {
    "loop.wake": Act(
        template="/loops/{name}/wake",
        level=1,
        title="Wake the loop {name}",
        text="It takes its next turn now.",
        button="Wake",
        body=nothing,
        done=said("{name} takes its next turn now."),
        after=back_to,
    ),
    "outbox.requeue": Act(
        template="/outbox/{channel}/requeue",
        level=2,
        title="Send messages of {channel} again",
        text="They are tried again from the first attempt, the cause being gone.",
        button="Send again",
        body=lambda form: {
            "seqs": [n for s in form.get("seqs", "").split() if (n := integer_of(s)) is not None],
            "why": form.get("why", ""),
        },
        done=lambda form, answer: f"{plural(answer['changed'], 'message')} of {form['channel']} will be sent again.",
        after=back_to,
        inputs=(Input(name="seqs", label="Numbers", required=True, mono=True), REASON),
        command="patra outbox requeue {channel} {seqs}",
    ),
}
