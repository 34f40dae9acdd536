-- Which tenants an endpoint gets events of (JSON list; empty: all); its last secret while both sign; and how it fares (B9).
ALTER TABLE bus_webhook ADD COLUMN tenants TEXT NOT NULL DEFAULT '[]';
ALTER TABLE bus_webhook ADD COLUMN old_secret TEXT NOT NULL DEFAULT '';
ALTER TABLE bus_webhook ADD COLUMN old_secret_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE bus_webhook ADD COLUMN last_success_at BIGINT;
ALTER TABLE bus_webhook ADD COLUMN suspended_at BIGINT;
ALTER TABLE bus_webhook ADD COLUMN suspended_reason TEXT NOT NULL DEFAULT '';
