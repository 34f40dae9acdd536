"""What the rate gate can still give the tasks of a plan, as the store knows it (ch. 4.10.6).

The planner asks no network: a gate in Redis keeps its buckets to itself, but what was used of quotas and how long a
provider is left alone stands in the store, whatever the gate.
"""

from patra.ingest.packs.spec import Spec
from patra.ingest.ratelimit import quota_store
from patra.ingest.ratelimit.limiter import Budget, estimate
from patra.ingest.ratelimit.policy import rate_key, rate_policy
from patra.ingest.vocabulary.codes import AuthType
from patra.kernel.clock import SECOND
from patra.kernel.db import Tx


def rate_budget(tx: Tx, spec: Spec, now: int) -> Budget:
    """Permits within the longest time of a slice, how many tasks can share them, and until when there are none."""
    sure = spec.auth.type is not AuthType.NONE and not spec.auth.optional
    key = rate_key(spec.provenance_code, spec, authenticated=sure)
    policy = rate_policy(spec.rate_limit, spec.limits, authenticated=sure)
    state = quota_store.rate_state(tx, key, policy, now)
    return estimate(policy, state, spec.planning.max_duration_sec * SECOND, now)
