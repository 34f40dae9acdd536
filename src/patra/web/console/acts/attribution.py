"""Acts on periods, statements and the keys of apps."""

from patra.web.console.act import Act, Input, back_to, new_key, nothing, say
from patra.web.console.markup.formats import link, plural

ATTRIBUTION: dict[str, Act] = {
    "attribution.close": Act(
        template="/attribution/apps/{app}/periods/{period}/close",
        level=3,
        title="Close a period {app}",
        text="A statement is written that never changes. What is committed later goes into the next one as adjustment.",
        button="Close the period",
        body=lambda form: {"allowUnpriced": form.get("unpriced", "") == "yes"},
        done=lambda form, answer: f"{form['app']} {answer['period']} is closed: statement {answer['number']}.",
        after=lambda form, _: link("/attribution/statement", app=form["app"], period=form["period"]),
        inputs=(
            Input(name="app", label="App", required=True, mono=True),
            Input(name="period", label="Period", hint="a month 2026-10 or a day 2026-10-31", required=True, mono=True),
            Input(name="unpriced", label="Facts without a price", choices=("no", "yes"), value="no"),
        ),
        command="patra attribution period close {period} --app {app}",
    ),
    "attribution.reconcile": Act(
        template="/attribution/apps/{app}/periods/{period}/reconcile",
        level=2,
        title="Reconcile {app} {period}",
        text="Their list is compared with the statement; our decisions explain each difference. Nothing changes.",
        button="Compare",
        body=lambda form: {"csv": form.get("csv", "")},
        done=lambda _, answer: (
            f"{plural(len(answer['differences']), 'difference')} in {plural(answer['rows'], 'row')}"
            if answer["differences"]
            else f"{plural(answer['rows'], 'row agrees', 'rows agree')} with ours"
        ),
        after=back_to,
        report="attribution/reconciled.html",
        inputs=(
            Input(
                name="csv",
                label="Their list",
                hint="CSV with a header: billingKey, priceMicros",
                rows=8,
                required=True,
                mono=True,
            ),
        ),
        command="patra attribution reconcile THEIRS.csv --app {app} --period {period}",
    ),
    **{
        f"attribution.app.{name}": Act(
            method=method,
            template=template,
            level=3,
            title=title,
            text=text,
            button=button,
            body=nothing,
            done=say(done),
            after=back_to,
            confirm="" if name == "add" else "app",
            inputs=(Input(name="app", label="App", required=True, mono=True),) if name == "add" else (),
            command=f"patra attribution app {name} {{app}}",
            secret=secret,
        )
        for name, method, template, title, text, button, done, secret in (
            (
                "add",
                "POST",
                "/attribution/apps/{app}/keys",
                "Give an app a key",
                "The key is shown once. From the first key on, every batch needs one.",
                "Make a key",
                "{app} has a new key.",
                new_key,
            ),
            (
                "rotate",
                "POST",
                "/attribution/apps/{app}/rotate",
                "Rotate the keys of {app}",
                "Its keys in force are refused within 2 s, and a new one is shown once.",
                "Rotate",
                "{app} has a new key; the old ones are revoked.",
                new_key,
            ),
            (
                "revoke",
                "DELETE",
                "/attribution/apps/{app}/keys",
                "Revoke the keys of {app}",
                "Its batches are refused within 2 s.",
                "Revoke",
                "The keys of {app} are revoked.",
                None,
            ),
        )
    },
}
