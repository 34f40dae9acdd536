"""The frozen windows: dedup per tier (§3.8.14), the wait for a terminal event (§3.8.18), limits on `eventAt`."""

from patra.kernel.clock import DAY, HOUR, SECOND

BILLING_WINDOW = 14 * DAY
DIAGNOSTICS_WINDOW = 3 * DAY
FUTURE_LIMIT = 24 * HOUR
WAIT_WINDOW = 120 * SECOND
"""`terminalWaitWindow` (§3.8.18), and the wait of a pending click (F16)."""
