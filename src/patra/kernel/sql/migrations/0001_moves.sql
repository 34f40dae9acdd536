-- The journal of every machine: who moved, along which edge, why, when, under which version of the rules.
CREATE TABLE krn_move (
    move_id {id},
    subject TEXT NOT NULL,
    machine TEXT NOT NULL,
    was TEXT NOT NULL,
    on_event TEXT NOT NULL,
    became TEXT NOT NULL,
    reason_code TEXT NOT NULL,
    moved_at BIGINT NOT NULL,
    rule_version TEXT NOT NULL
);
CREATE INDEX krn_move_by_subject ON krn_move (subject, machine);
