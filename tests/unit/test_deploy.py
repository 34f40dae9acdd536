"""What `deploy/` ships renders, is valid, and names only metrics, labels and settings that the code has."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import crossplane
import kubernetes_validate
import promql_parser
import pytest
import yaml

import patra
from patra.app.configuration.settings import WebSettings, every_setting
from patra.app.wiring import COMPONENTS
from patra.attribution.intake.decompress import MAX_BODY_BYTES, MAX_ENCODING_OVERHEAD_BYTES
from patra.client import ROUTE_HEADER
from patra.kernel.telemetry import METRICS
from patra.web.api import studio
from tests.source_tree import sources

DEPLOY = Path(__file__).parents[2] / "deploy"
BIN = Path(sys.executable).parent
CHART = DEPLOY / "helm" / "patra"
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
FROM_PROMETHEUS = {"up": {"instance", "job"}}
ADDED_BY_SCRAPE = {"instance", "job"}


@cache
def metrics() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels."""
    sources()
    known = dict(FROM_PROMETHEUS)
    for metric in METRICS:
        labels = set(metric.labels) | ADDED_BY_SCRAPE
        known[metric.name] = labels
        if metric.kind == "histogram":
            known |= {metric.name + suffix: labels | {"le"} for suffix in HISTOGRAM_SUFFIXES}
    return known


def dashboards() -> Iterator[tuple[str, str]]:
    for file in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{file.name}: {panel['title']}", target["expr"]


def rules() -> Iterator[tuple[str, str]]:
    document = yaml.safe_load((DEPLOY / "prometheus" / "patra.rules.yml").read_text())
    for group in document["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"].keys() == {"summary", "action", "runbook"}
            yield rule["alert"], rule["expr"]


QUERIES = [*dashboards(), *rules()]


@pytest.mark.parametrize(("where", "query"), QUERIES, ids=[where for where, _ in QUERIES])
def test_a_query_parses_and_uses_metrics_and_labels_that_exist(where: str, query: str) -> None:
    promql_parser.parse(query)
    names = set(re.findall(r"\b(?:patra_\w+|up)\b", query))
    assert names
    assert names <= metrics().keys()
    allowed = set().union(*(metrics()[name] for name in names))
    used = {label for group in re.findall(r"\bby \(([^)]*)\)", query) for label in re.split(r",\s*", group)}
    used |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query))
    assert used <= allowed, where


def test_the_dashboards_are_what_their_table_makes() -> None:
    spec = importlib.util.spec_from_file_location("make", DEPLOY / "grafana" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    made = make.files()
    assert {file.name: file.read_text() for file in (DEPLOY / "grafana").glob("*.json")} == made


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_dockerfile_has_no_findings() -> None:
    run(BIN / "hadolint", DEPLOY / "docker" / "Dockerfile")


def test_the_compose_files_follow_the_schema_of_compose() -> None:
    files = sorted((DEPLOY / "compose").glob("compose*.yaml"))
    assert len(files) == 2
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files)


EVERYTHING = "web.ingress.enabled=true,web.ingress.host=h.test,web.ingress.tlsSecret=t,redis.existingSecret=r,nats.existingSecret=n,publicUrl=https://h.test,backup.claim=b"


@pytest.mark.parametrize("values", ["", EVERYTHING], ids=["defaults", "everything"])
def test_the_chart_renders_to_valid_kubernetes_objects(values: str) -> None:
    run(BIN / "helm", "lint", "--strict", CHART)
    text = run(BIN / "helm", "template", "trial", CHART, *(["--set", values] if values else []))
    objects = [item for item in yaml.safe_load_all(text) if item]
    kinds = {item["kind"] for item in objects}
    assert {"Deployment", "Job", "Service", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget"} <= kinds
    for item in objects:
        kubernetes_validate.validate(item, "1.30", strict=True)
    for item in objects:
        if item["kind"] in {"Deployment", "Job"}:
            pod = item["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in pod["containers"])


def test_the_chart_backs_up_to_a_new_file_of_the_claim_each_time() -> None:
    text = run(BIN / "helm", "template", "trial", CHART, "--set", "backup.claim=vault")
    (job,) = [item for item in yaml.safe_load_all(text) if item and item["kind"] == "CronJob"]
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["args"] == ["backup", "/backups/$(POD_NAME)"]
    named = {one["name"]: one for one in container["env"]}
    assert named["POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert "PATRA_STORE_URL" in named
    (claim,) = [one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"] if one["name"] == "backups"]
    assert claim == "vault"
    assert "CronJob" not in run(BIN / "helm", "template", "trial", CHART)


def test_a_worker_of_the_chart_runs_the_loops_of_its_engine_or_those_and_the_roles_that_it_names() -> None:
    own = "workers.timers.loops={attribution,ingest},workers.timers.roles={timers,indexer},workers.timers.replicas=1"
    text = run(BIN / "helm", "template", "trial", CHART, "--set", f"{own},workers.timers.autoscaling.enabled=false")
    deployments = [item for item in yaml.safe_load_all(text) if item and item["kind"] == "Deployment"]
    arguments = {
        item["metadata"]["name"].rpartition("work-")[2]: item["spec"]["template"]["spec"]["containers"][0]["args"]
        for item in deployments
    }
    assert arguments["ingest"] == ["work", "ingest", "--port", "8642"]
    assert arguments["timers"] == [
        "work",
        "attribution",
        "ingest",
        "--port",
        "8642",
        "--role",
        "timers",
        "--role",
        "indexer",
    ]


def test_every_variable_that_a_deployment_sets_is_a_setting() -> None:
    known = {setting.variable for setting in every_setting()}
    texts = [run(BIN / "helm", "template", "trial", CHART, "--set", EVERYTHING)]
    texts += [
        file.read_text()
        for folder in ("compose", "systemd", "docker")
        for file in sorted((DEPLOY / folder).glob("*"))
        if file.is_file()
    ]
    used = set(re.findall(r"\bPATRA_[A-Z_]+\b", "\n".join(texts)))
    assert used
    assert used - known == set()


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").iterdir()), ids=lambda unit: unit.name)
def test_a_unit_has_its_sections_and_runs_a_command_that_exists(unit: Path) -> None:
    text = unit.read_text()
    kinds = {".service": "[Service]", ".timer": "[Timer]"}
    assert "[Unit]" in text
    assert kinds[unit.suffix] in text
    for command in re.findall(r"/opt/patra/bin/patra (\w+)", text):
        run(BIN / "patra", command, "--help")


UNITS = sorted((DEPLOY / "systemd").iterdir())
GUIDE = (DEPLOY.parent / "docs" / "how-to" / "deploy.md").read_text("utf-8")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    files = [tmp_path / unit.name.replace("@.", "@ingest.") for unit in UNITS]
    for unit, file in zip(UNITS, files, strict=True):
        file.write_text(unit.read_text().replace("/opt/patra/bin/patra", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=yes", *files], capture_output=True, text=True, check=False
    )
    found = [line for line in done.stderr.splitlines() if "patra" in line]
    assert found == [], done.stderr


def test_the_guide_makes_every_file_and_folder_that_the_units_read_and_their_users_can_reach_them() -> None:
    texts = "\n".join(unit.read_text() for unit in UNITS)
    named = set(re.findall(r"/(?:etc|var/backups)/patra(?:/[\w.]+)?\b", texts)) - {"/var/backups/patra/patra"}
    assert {"/etc/patra/patra.toml", "/etc/patra/store_url", "/var/backups/patra"} <= named
    assert [path for path in sorted(named) if path not in GUIDE] == []
    assert "DynamicUser=yes" in texts
    assert "install -d -m 0755 /etc/patra" in GUIDE, "a user that systemd makes up can enter no folder of root's alone"
    for text in re.findall(r"^(?:LoadCredential|Environment)=.*_?URL.*|^LoadCredential=store.*", texts, re.MULTILINE):
        assert text in GUIDE, "the same lines for patra.service on PostgreSQL"


def test_workers_of_one_template_share_no_folder() -> None:
    """systemd gives a state folder to the user of the unit that starts last: the others could no longer write there."""
    text = (DEPLOY / "systemd" / "patra-work@.service").read_text()
    folders = re.findall(r"^(?:StateDirectory|WorkingDirectory)=(.*)", text, re.MULTILINE)
    assert folders == ["patra-work/%i", "/var/lib/patra-work/%i"]


def test_each_engine_has_a_worker_or_the_guide_says_how_to_add_one() -> None:
    engines = {component.name for component in COMPONENTS if component.join is not None}
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.scaled.yaml").read_text())
    chart = yaml.safe_load((CHART / "values.yaml").read_text())
    by_compose = {one["command"][1] for one in compose["services"].values() if one.get("command", [""])[0] == "work"}
    assert by_compose == set(chart["workers"])
    missing = engines - by_compose
    assert missing == {"studio"}
    for engine in missing:
        assert f"`work {engine} --port 8642`" in GUIDE
        assert f"`workers.{engine}`" in GUIDE


def test_compose_files_of_secrets_are_where_their_heads_write_them_and_never_committed() -> None:
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    for file in (DEPLOY / "compose").glob("compose*.yaml"):
        head = "\n".join(line for line in file.read_text().splitlines() if line.startswith("#"))
        assert "In this folder" in head
        for secret in yaml.safe_load(file.read_text())["secrets"].values():
            name = secret["file"].removeprefix("./")
            assert re.search(rf"\b{name}\b", head), f"{file.name} does not say how {name} is made"
            assert f"/deploy/compose/{name}" in ignored


def test_ports_and_versions_are_those_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == patra.__version__
    port = str(WebSettings().port)
    texts = {
        file.relative_to(DEPLOY).as_posix(): file.read_text()
        for folder in ("compose", "docker", "helm", "nginx")
        for file in (DEPLOY / folder).rglob("*")
        if file.is_file()
    }
    ours = re.compile(r"(?:--port\W+|EXPOSE |containerPort: |(?:127\.0\.0\.1|10\.0\.0\.\d|web|work-\w+):)(\d{4,5})\b")
    named = {(name, found) for name, text in texts.items() for found in ours.findall(text)}
    others = {("compose/compose.scaled.yaml", "9090"), ("compose/compose.scaled.yaml", "3000")}  # Prometheus, Grafana
    assert {name for name, found in named if found == port} == {
        "compose/compose.scaled.yaml",
        "compose/compose.yaml",
        "compose/prometheus/prometheus.yml",
        "docker/Dockerfile",
        "helm/patra/templates/_helpers.tpl",
        "helm/patra/templates/workers.yaml",
        "nginx/patra.conf",
    }
    assert {(name, found) for name, found in named if found != port} == others


def test_what_narrows_the_network_policy_can_name_the_pods_of_the_database() -> None:
    peer = '[{"podSelector":{"matchLabels":{"app":"postgres"}}}]'
    narrow = ["--set", "networkPolicy.egressCidrs={192.0.2.0/24}", "--set-json", f"networkPolicy.egressTo={peer}"]
    for options, networks in ((narrow, {"192.0.2.0/24"}), ([], {"0.0.0.0/0", "::/0"})):
        text = run(BIN / "helm", "template", "trial", CHART, *options)
        [policy] = [one for one in yaml.safe_load_all(text) if one and one["kind"] == "NetworkPolicy"]
        kubernetes_validate.validate(policy, "1.30", strict=True)
        peers = [peer for rule in policy["spec"]["egress"] for peer in rule.get("to", [])]
        assert {peer["ipBlock"]["cidr"] for peer in peers if "ipBlock" in peer} == networks
        assert sum("podSelector" in peer for peer in peers) == (1 if options else 0)


def test_keys_of_providers_come_to_every_process_by_reference() -> None:
    text = run(BIN / "helm", "template", "trial", CHART, "--set", "secretVariables={providers,bucket}")
    deployments = [one for one in yaml.safe_load_all(text) if one and one["kind"] == "Deployment"]
    assert deployments
    for one in deployments:
        kubernetes_validate.validate(one, "1.30", strict=True)
        [container] = one["spec"]["template"]["spec"]["containers"]
        assert [entry["secretRef"]["name"] for entry in container["envFrom"]] == ["providers", "bucket"]


def test_the_nightly_unit_of_the_documentation_runs_where_the_store_is() -> None:
    text = (DEPLOY.parent / "docs" / "how-to" / "harvest-every-night.md").read_text("utf-8")
    unit = text.partition("patra-nightly.service\n")[2].partition("# /etc/")[0]
    assert "\nWorkingDirectory=/" in unit, "without it a command looks for ./patra.db in /"
    [script] = re.findall(r"ExecStart=/bin/sh -c '(.*)'", unit)
    stand_in = f"patra() {{ [ $4 != crossref/otters ] || return 5; }}; {script.replace('$$', '$')}"
    assert subprocess.run(["/bin/sh", "-c", stand_in], check=False).returncode == 5, "one that fails is told"


Directive = dict[str, Any]
MEGABYTE = 1024 * 1024


@pytest.fixture(name="nginx")
def _nginx(tmp_path: Path) -> list[Directive]:
    """The directives of deploy/nginx as nginx would include them; each one known, in its place, with its arguments."""
    main = tmp_path / "nginx.conf"
    main.write_text(f"events {{ }} http {{ include {DEPLOY / 'nginx' / 'patra.conf'}; }}")
    found = crossplane.parse(str(main), combine=True)
    [http] = [one for one in found["config"][0]["parsed"] if one["directive"] == "http"]
    values = {inner["line"] for one in http["block"] if one["directive"] == "map" for inner in one["block"]}
    errors = crossplane.parse(str(main), strict=True, combine=True)["errors"]
    assert [one for one in errors if one["line"] not in values] == [], (
        "but for the values of a map, which are no directives"
    )
    return http["block"]


def block(directives: list[Directive], *words: str) -> list[Directive]:
    """The one block that begins so."""
    [found] = [one["block"] for one in directives if [one["directive"], *one["args"]][: len(words)] == list(words)]
    return found


def arguments(directives: list[Directive]) -> dict[str, list[str]]:
    return {one["directive"]: one["args"] for one in directives if "block" not in one}


def test_nginx_hashes_clients_by_the_header_that_they_send_and_others_by_their_address(nginx: list[Directive]) -> None:
    header = "$http_" + ROUTE_HEADER.lower().replace("-", "_")
    assert arguments(block(nginx, "map", header, "$patra_client")) == {"": ["$remote_addr"], "default": [header]}
    upstream = block(nginx, "upstream", "patra_web")
    assert arguments(upstream)["hash"] == ["$patra_client", "consistent"]
    servers = [one["args"] for one in upstream if one["directive"] == "server"]
    assert len({address for address, *_ in servers}) == len(servers) > 1
    assert f'"{ROUTE_HEADER}"' in (DEPLOY.parent / "clients" / "javascript" / "src" / "core.js").read_text("utf-8")


def test_nginx_sends_a_batch_again_and_nothing_else_that_changes_something(nginx: list[Directive]) -> None:
    server = block(nginx, "server")
    events, others = arguments(block(server, "location", "=", "/events")), arguments(block(server, "location", "/"))
    assert events.pop("proxy_next_upstream") == ["error", "timeout", "non_idempotent"]
    assert events.pop("proxy_next_upstream_tries") == ["2"]
    assert events == others == {"proxy_pass": ["http://patra_web"]}
    assert "proxy_next_upstream" not in arguments(server)
    assert "proxy_next_upstream" not in arguments(nginx)


def test_nginx_bounds_nothing_more_narrowly_than_patra_does(nginx: list[Directive]) -> None:
    server, upstream, web = arguments(block(nginx, "server")), arguments(block(nginx, "upstream")), WebSettings()
    largest = max(MAX_BODY_BYTES + MAX_ENCODING_OVERHEAD_BYTES, studio.MAX_BODY_BYTES, web.max_body_bytes)
    assert int(server["client_max_body_size"][0].removesuffix("m")) * MEGABYTE >= largest
    assert int(server["proxy_read_timeout"][0].removesuffix("s")) > web.request_seconds
    assert int(upstream["keepalive_timeout"][0].removesuffix("s")) < web.idle_seconds


def test_nginx_passes_the_host_on_and_says_itself_who_asks(nginx: list[Directive]) -> None:
    sent = {one["args"][0]: one["args"][1] for one in block(nginx, "server") if one["directive"] == "proxy_set_header"}
    assert sent == {"Connection": "", "Host": "$http_host", "X-Forwarded-For": "$remote_addr"}
