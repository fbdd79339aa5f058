"""What is deployed is what there is: files for containers, held against our own command line."""

import ast
import io
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.cli.environment import Environment
from aggregator.cli.parser import make_parser
from aggregator.config import parse_config
from aggregator.upstream.http.proxies import parse_proxies
from tests.peers import aggregating
from tests.replicas.proxies import nginx_rules

ROOT = Path(__file__).parent.parent
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = list(
    yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8"))
)
REPLICA = COMPOSE["services"]["one"]
(POD,) = [each["spec"]["template"]["spec"] for each in MANIFESTS if each["kind"] == "Deployment"]
(PROCESS,) = POD["containers"]
USER = 10_001


def steps() -> Iterator[tuple[str, str]]:
    """Yield each step of the image: what it does, and with what."""
    for line in re.sub(r"\\\n", " ", CONTAINER).splitlines():
        if line and not line.startswith("#"):
            word, _, rest = line.strip().partition(" ")
            yield word, rest.strip()


def step(word: str) -> list[str]:
    return [rest for each, rest in steps() if each == word]


def typed(words: list[str]) -> Any:
    """Return what our own command line makes of some words."""
    plain = [re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in words]
    out = io.StringIO()
    environment = Environment(out, out, {}, ROOT, out, sys.platform)
    return make_parser(environment).parse_args(plain)


COMMANDS = {
    "image": ast.literal_eval(step("CMD")[0]),
    "compose": REPLICA["command"],
    "kubernetes": PROCESS["args"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_each_command_is_one_that_we_understand(words: list[str]) -> None:
    options = typed(words)

    assert options.command == "serve"
    assert options.http == "0.0.0.0:8765"
    assert options.config == "/config/servers.yaml"
    assert options.http.endswith(f":{step('EXPOSE')[0]}")
    parse_proxies(options.behind_proxy)


def test_there_is_time_for_notice_and_drain_before_anything_is_killed() -> None:
    for words, grace in (
        (REPLICA["command"], float(REPLICA["stop_grace_period"].removesuffix("s"))),
        (PROCESS["args"], POD["terminationGracePeriodSeconds"]),
    ):
        options = typed(words)
        assert options.notice + options.drain + 15 <= grace


def test_the_image_is_made_of_what_there_is_and_runs_as_nobody_in_particular() -> None:
    sources = [word for each in step("COPY") for word in each.split()[:-1]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install = next(each for each in step("RUN") if "pip install" in each)
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', install)

    # What the wheel is made of, without which it cannot be built.
    assert {"pyproject.toml", "README.md", "LICENSE", "servers.yaml", "aggregator"} <= set(sources)
    for each in sources:
        assert each.startswith(("--from=", "/opt")) or (ROOT / each).exists()
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert ast.literal_eval(step("ENTRYPOINT")[0]) == ["aggregator"]
    assert "aggregator" in project["scripts"]
    assert step("USER") == [f"{USER}:{USER}"]
    assert [word for word, _ in steps()].index("USER") > CONTAINER.count("FROM")


def test_nothing_is_written_but_where_it_may_be() -> None:
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in PROCESS["volumeMounts"]}
    writable = {path for path, is_fixed in mounts.items() if not is_fixed}
    secured = PROCESS["securityContext"]

    assert writable == {"/state", "/tmp"}  # noqa: S108 - only read
    assert {each.partition(":")[0] for each in REPLICA["tmpfs"]} == writable
    assert REPLICA["read_only"]
    assert secured["readOnlyRootFilesystem"]
    assert not secured["allowPrivilegeEscalation"]
    assert secured["capabilities"]["drop"] == REPLICA["cap_drop"] == ["ALL"]
    assert POD["securityContext"]["runAsUser"] == POD["securityContext"]["fsGroup"] == USER
    assert "XDG_STATE_HOME=/state" in CONTAINER


@pytest.mark.anyio
async def test_probes_ask_for_what_needs_no_token() -> None:
    from aggregator.upstream.http.site import Site  # noqa: PLC0415 - only here

    async with aggregating({}) as upstream:
        open_paths = Site(upstream).open_paths

    probes = [PROCESS[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    asked = {each["path"] for each in probes}
    asked |= set(re.findall(r"127\.0\.0\.1:8765(/\w+)", CONTAINER))
    assert asked == {"/healthz", "/readyz"}
    assert asked <= open_paths
    assert {each["port"] for each in probes} == {each["name"] for each in PROCESS["ports"]}


def test_the_files_belong_together() -> None:
    (service,) = [each for each in MANIFESTS if each["kind"] == "Service"]
    (deployment,) = [each for each in MANIFESTS if each["kind"] == "Deployment"]
    (network,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    assert deployment["spec"]["replicas"] == 2
    assert f"--behind-proxy={network['subnet']}" in REPLICA["command"]
    assert COMPOSE["services"]["one"] == COMPOSE["services"]["two"]
    servers = re.findall(r"server (\w+) (\w+):8765", _haproxy())
    assert {name for pair in servers for name in pair} == {"one", "two"}
    for volume in POD["volumes"]:
        assert volume["name"] in {each["name"] for each in PROCESS["volumeMounts"]}


def test_what_they_serve_can_be_read() -> None:
    (data,) = [each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap"]
    ours = (ROOT / "deploy" / "servers.yaml").read_text(encoding="utf-8")

    for text in (ours, data["servers.yaml"]):
        config = parse_config(text, ROOT / "servers.yaml", {})
        assert config.servers
        assert not config.warnings


def test_no_image_is_taken_from_a_host_that_is_named() -> None:
    images = [each["image"] for each in COMPOSE["services"].values()] + [PROCESS["image"]]
    images += [each.split()[0] for each in step("FROM")]

    for image in images:
        first, slash, _ = image.partition("/")
        assert not slash or not {".", ":"} & {*first}


def test_the_page_tells_a_proxy_what_the_file_does() -> None:
    told = {line for line in _shown().splitlines() if not line.startswith("  server ")}

    assert "backend replicas" in told
    assert told <= {*_haproxy().splitlines()}


def test_the_page_tells_another_proxy_what_replicas_are_tried_behind() -> None:
    page = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
    shown = page.partition("```nginx\n")[2].partition("```")[0]

    assert shown == nginx_rules("80", {"one": "10.0.0.1:8765", "two": "10.0.0.2:8765"})


def _shown() -> str:
    page = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
    return page.partition("```haproxy\n")[2].partition("```")[0]


def _haproxy() -> str:
    return (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("haproxy", path="/usr/sbin:/usr/bin") is None, reason="none here")
@pytest.mark.parametrize("told", [_haproxy(), _shown()], ids=["file", "page"])
def test_the_proxy_takes_what_it_is_told(told: str, tmp_path: Path) -> None:
    command = shutil.which("haproxy", path="/usr/sbin:/usr/bin") or ""
    (tmp_path / "haproxy.cfg").write_text(told, encoding="utf-8")
    done = subprocess.run(
        [command, "-c", "-f", "haproxy.cfg"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stderr
