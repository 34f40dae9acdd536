"""A task from lease to end (ch. 5.4, 9).

| module | for |
|---|---|
| `executor`, `lease_keeper` | takes tasks under a lease (ch. 5.2.2, 5.4.1; turns in `kernel.leases`); renews it |
| `compiled_plan`, `run_context` | what is compiled once per plan; what one attempt is about |
| `run` | one attempt, batch after batch; two phases (ch. 5.4.2, 4.6) |
| `on_success`, `on_failure` | where a page leads (ch. 9.3); put back, re-slice, give up (ch. 9.5) |
| `end_of_list` | what a list that ended lacks; a second reading of one that no total counts |
| `growing_keys` | harvests by a key that only grows: whole, or how they go on (ch. 4.4.3) |
| `run_recorder` | the batch committed, measured and logged, samples of batches (ch. 14.5) |
| `progress`, `run_to_completion` | how far the work of a trigger is; all of it in one process |
"""
