-- The registry (ch. 3.2): what packs say, table by table. Codes are the keys; there are no foreign keys (ch. 0.4).
-- Values that belong together are JSON in `cfg`; what is searched or joined by has a column.

CREATE TABLE sys_dict_type (
  type_code TEXT NOT NULL PRIMARY KEY,
  type_name TEXT NOT NULL
);
CREATE TABLE sys_dict_item (
  type_code TEXT NOT NULL,
  item_code TEXT NOT NULL,
  item_name TEXT NOT NULL,
  display_order BIGINT NOT NULL,
  enabled BIGINT NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  PRIMARY KEY (type_code, item_code)
);
CREATE TABLE sys_dict_item_alias (
  type_code TEXT NOT NULL,
  alias_code TEXT NOT NULL,
  item_code TEXT NOT NULL,
  PRIMARY KEY (type_code, alias_code)
);

-- Every pack that was ever loaded, with where its parts stand in the file.
CREATE TABLE reg_pack (
  provenance_code TEXT NOT NULL,
  version_no BIGINT NOT NULL,
  pack_version TEXT NOT NULL,
  pack_hash TEXT NOT NULL,
  file_name TEXT NOT NULL,
  document TEXT NOT NULL,
  marks TEXT NOT NULL,
  loaded_at BIGINT NOT NULL,
  loaded_by TEXT NOT NULL,
  PRIMARY KEY (provenance_code, version_no)
);
CREATE TABLE reg_provenance (
  provenance_code TEXT NOT NULL PRIMARY KEY,
  provenance_name TEXT NOT NULL,
  description TEXT NOT NULL,
  enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
  pack_version TEXT NOT NULL,
  pack_hash TEXT NOT NULL,
  version_no BIGINT NOT NULL,
  cfg TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE reg_prov_endpoint_def (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  position BIGINT NOT NULL,
  endpoint_role_code TEXT NOT NULL,
  access_code TEXT NOT NULL,
  http_method_code TEXT,
  path_template TEXT,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name)
);
CREATE TABLE reg_prov_credential (
  provenance_code TEXT NOT NULL,
  credential_code TEXT NOT NULL,
  position BIGINT NOT NULL,
  auth_type_code TEXT NOT NULL,
  priority BIGINT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, credential_code)
);
CREATE TABLE reg_prov_schedule (
  provenance_code TEXT NOT NULL,
  schedule_name TEXT NOT NULL,
  position BIGINT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cron TEXT NOT NULL,
  enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, schedule_name)
);

-- One row for each endpoint; an empty operation_code means every operation.
CREATE TABLE reg_prov_http_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_pagination_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_window_offset_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_retry_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_rate_limit_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_batching_cfg (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_expr_capability (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_expr_render_rule (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
CREATE TABLE reg_prov_api_param_map (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  param_name TEXT NOT NULL,
  position BIGINT NOT NULL,
  location_code TEXT NOT NULL,
  required BIGINT NOT NULL CHECK (required IN (0, 1)),
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code, param_name)
);
-- Paths of answers (RESPONSE), fields of records (OUTPUT) and what else the mapping says (MAPPING).
CREATE TABLE reg_expr_field_dict (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  field_kind TEXT NOT NULL CHECK (field_kind IN ('RESPONSE', 'OUTPUT', 'MAPPING')),
  field_name TEXT NOT NULL,
  position BIGINT NOT NULL,
  cfg TEXT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code, field_kind, field_name)
);
