"""A log that fails in; a small log that still fails out, for seeded runs, which Hypothesis does not shrink."""


def shrunk(lines, fails):
    """Leave out lines, then events, then optional fields, as long as `fails(lines)` holds."""
    steps = [_without_lines, _without_events, _without_fields]
    changed = True
    while changed:
        changed = False
        for step in steps:
            for smaller in step(lines):
                if fails(smaller):
                    lines = smaller
                    changed = True
                    break
            if changed:
                break
    return lines


def _without_lines(lines):
    size = len(lines) // 2
    while size >= 1:
        for start in range(0, len(lines), size):
            yield lines[:start] + lines[start + size :]
        size //= 2


def _without_events(lines):
    for number, line in enumerate(lines):
        batch = line.get("batch")
        events = batch.get("events") if isinstance(batch, dict) else None
        if isinstance(events, list) and len(events) > 1:
            for index in range(len(events)):
                fewer = {**batch, "events": events[:index] + events[index + 1 :]}
                yield [*lines[:number], {**line, "batch": fewer}, *lines[number + 1 :]]


def _without_fields(lines):
    for number, line in enumerate(lines):
        batch = line.get("batch")
        events = batch.get("events") if isinstance(batch, dict) else None
        for index, event in enumerate(events if isinstance(events, list) else []):
            for name in ("idempotencyKey", "eventIdScope", "errorClass", "extensions"):
                if isinstance(event, dict) and name in event:
                    less = {key: value for key, value in event.items() if key != name}
                    fewer = {**batch, "events": [*events[:index], less, *events[index + 1 :]]}
                    yield [*lines[:number], {**line, "batch": fewer}, *lines[number + 1 :]]
