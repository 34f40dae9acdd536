"""Names that the whole pipeline uses: events and jobs, reason codes, stages of a run."""
