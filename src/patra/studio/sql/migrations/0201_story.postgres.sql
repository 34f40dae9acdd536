-- Where artifacts came from, so that they are found by their hash. A film's own have no job.
CREATE TABLE stu_artifact (
  sha256 TEXT NOT NULL,
  artifact_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  noted_at BIGINT NOT NULL,
  PRIMARY KEY (sha256, run_id, job_id, kind)
);
CREATE INDEX stu_artifact_by_id ON stu_artifact (artifact_id);
CREATE INDEX stu_task_by_chapter ON stu_task (chapter_sha256);
INSERT INTO stu_artifact (sha256, artifact_id, run_id, job_id, kind, noted_at)
SELECT DISTINCT a.value ->> 'sha256', a.value ->> 'artifact_id', j.run_id, j.job_id, a.value ->> 'kind', j.changed_at
FROM stu_job j, json_array_elements(j.artifacts::json) a;
INSERT INTO stu_artifact (sha256, artifact_id, run_id, job_id, kind, noted_at)
SELECT film_sha256, 'art_' || substr(film_sha256, 1, 24), run_id, '', 'film', coalesce(published_at, submitted_at)
FROM stu_task WHERE film_sha256 IS NOT NULL AND run_id IS NOT NULL;
