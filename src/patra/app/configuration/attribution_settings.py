"""The settings of attribution."""

from typing import Annotated

from msgspec import Meta

from patra.app.configuration.settings_section import SECRET, URL, Section


class AttributionSettings(Section, frozen=True):
    """The event and attribution processor."""

    archive: Annotated[
        str,
        Meta(
            description="Where output records go: `store` (the store itself, in the transaction of the decision), "
            "`parquet:FOLDER`, the `http://` or `https://` URL of an endpoint that takes them, or `bus` "
            "(each record an event `attribution.record.emitted`).",
            extra=URL,
        ),
    ] = "store"
    archive_key: Annotated[
        str,
        Meta(
            description="Token that an endpoint for output records gets as `Authorization: Bearer`; empty: "
            "nothing. A reference.",
            extra=SECRET,
        ),
    ] = ""
    waiting_batches: Annotated[
        int, Meta(description="Batches that may wait for the writer; more are answered with 503.", ge=1, le=100_000)
    ] = 256
    commit_batches: Annotated[int, Meta(description="The most batches that one commit takes.", ge=1, le=1000)] = 32
    app_queue_share: Annotated[
        float,
        Meta(
            description="Part of the queue that batches of one registered app may fill; more of it is answered with "
            "503 and `Retry-After`, while other apps are served.",
            gt=0,
            le=1,
        ),
    ] = 0.5
    app_batches_per_second: Annotated[
        float,
        Meta(description="Batches a second that a registered app may send, with bursts of two seconds; 0: any.", ge=0),
    ] = 0.0
    app_rates: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]],
        Meta(description="The same for single apps, by `appId`; 0: any."),
    ] = {}  # noqa: RUF012  msgspec copies it
    reader_process: Annotated[
        bool,
        Meta(
            description="Read batches in a child process, so that two cores share the work of one server, where there "
            "are two.",
        ),
    ] = True
    timer_lag_seconds: Annotated[
        float,
        Meta(
            description="How far the timer of deadlines stays behind the clock, so that batches which other processes "
            "received before a deadline are decided before it. Deadlines are applied as of their instant all the same.",
            ge=0,
        ),
    ] = 2.0
    verify_hours: Annotated[
        int,
        Meta(description="Hours between two verifications in the background; 0: only by command.", ge=0, le=8760),
    ] = 24
    merge_after_hours: Annotated[
        int,
        Meta(
            description="Hours after the upgrade of the store to this release before runs of the index by key are "
            "joined: a search in a process of an earlier release fails on joined runs; 0: at once.",
            ge=0,
            le=8760,
        ),
    ] = 24
    keep_log_days: Annotated[
        int,
        Meta(description="Days to keep batches as received, for `patra attribution log export`; 0: for ever.", ge=0),
    ] = 30
    keep_rejects_days: Annotated[
        int, Meta(description="Days to keep rejected and quarantined events; 0: for ever.", ge=0)
    ] = 90
    keep_audits_days: Annotated[
        int, Meta(description="Days to keep audits of dropped events (duplicates, rejections); 0: for ever.", ge=0)
    ] = 0
    keep_facts_days: Annotated[
        int, Meta(description="Days to keep facts with their audits and records; 0: for ever.", ge=0)
    ] = 0
    purge_unclosed_facts: Annotated[
        bool,
        Meta(
            description="Purge facts by `keep_facts_days` although no statement counts them, for stores whose periods "
            "are closed elsewhere. Off: a fact stays until its period is closed and the statement is verified."
        ),
    ] = False
    keep_settled_days: Annotated[
        int,
        Meta(
            description="Days after its period was closed to keep a billable fact as settlement counts it, once its "
            "decision is gone (`keep_facts_days`); then it goes to history, and its closure is reduced to its outcome. "
            "At least 30; 0: for ever.",
            ge=0,
        ),
    ] = 0
    purge_folder: Annotated[
        str,
        Meta(
            description="Folder that the records of purged facts are written to before they go, where no place for "
            "history is named."
        ),
    ] = ""
    history_folder: Annotated[
        str,
        Meta(
            description="Folder that the log and the records of decisions past their time are moved to, as Parquet "
            "files with an index (`patra attribution history`). Empty: the log is deleted. Needs `patra[parquet]`."
        ),
    ] = ""
    history_url: Annotated[
        str,
        Meta(
            description="Object storage that they are moved to instead of the folder, such as "
            "`s3://bucket/attribution`. Needs the extras `patra[parquet,s3]`.",
            extra=URL,
        ),
    ] = ""
    signing_secrets: Annotated[
        tuple[str, ...],
        Meta(
            description="Apps bound to a signing secret, `APP=env:NAME` or `APP=file:PATH` each: their batches prove "
            "every `responseReference` in `extensions.responseProofs`, or are refused with 403. Two of an app overlap.",
            extra=SECRET,
        ),
    ] = ()
    require_signing: Annotated[
        bool,
        Meta(
            description="Refuse batches of apps that are bound to no signing secret: only then can no app claim the "
            "`responseReference` of another.",
        ),
    ] = False
