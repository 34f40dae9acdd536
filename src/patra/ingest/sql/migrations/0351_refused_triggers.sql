-- Triggers that were right but found nothing to do leave their root and are not refused: the list's indexes hold the rest.
DROP INDEX idx_sched_refused;
DROP INDEX idx_sched_refused_source;
CREATE INDEX idx_sched_refused ON ing_schedule_instance (triggered_at, schedule_instance_id)
  WHERE outcome_code NOT IN ('i_planned', 'i_window_empty', 'i_window_covered', 'i_no_candidates', 'i_tick_missed');
CREATE INDEX idx_sched_refused_source ON ing_schedule_instance (provenance_code, triggered_at, schedule_instance_id)
  WHERE outcome_code NOT IN ('i_planned', 'i_window_empty', 'i_window_covered', 'i_no_candidates', 'i_tick_missed');
