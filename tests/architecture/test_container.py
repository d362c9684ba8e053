"""The container files pass their checkers and keep what a later change could quietly lose."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from app.config.settings import Settings
from tests.architecture.imports import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("privypurse", "replica-one", "replica-two")
CLUSTER = ("scheduler", "worker-one", "worker-two")


def tool(name: str) -> str:
    """Where a checker is installed, beside this interpreter or on the path; else a skip."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if not path:
        pytest.skip(f"needs {name}")
    return path


def test_dockerfile_passes_hadolint() -> None:
    report = subprocess.run(
        [tool("hadolint"), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stdout + report.stderr


def test_compose_file_keeps_the_compose_specification() -> None:
    checker = [tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    report = subprocess.run(
        [*checker, "docker-compose.yml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stdout + report.stderr


def test_the_image_serves_as_an_unprivileged_user_and_watches_itself() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 999$", last_stage, re.MULTILINE)
    assert re.search(r"^VOLUME .*\"/data\"", last_stage, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\\\n.*healthz", last_stage, re.MULTILINE)
    assert "--require-hashes" in DOCKERFILE


def test_every_package_is_in_the_image_and_in_its_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for package in ("accounting", "mechanisms", "storage", "app", "client"):
        assert f"COPY {package} ./{package}" in DOCKERFILE
        assert f"!{package}/" in ignored
    # The handbook of the dashboard shows the documents, so they must be in the image.
    assert "COPY docs ./docs" in DOCKERFILE
    assert "!docs/*.md" in ignored


def test_without_a_profile_one_service_starts_and_needs_nothing() -> None:
    assert [name for name, one in SERVICES.items() if "profiles" not in one] == ["privypurse"]
    default = SERVICES["privypurse"]
    assert default["volumes"] == ["data:/data"]
    assert "PURSE_DATABASE_URL" not in default["environment"]
    # A secret that nobody has made yet is read from ``deploy/none``. This file is empty, so the
    # secret counts as missing.
    assert COMPOSE["secrets"]["purse_metrics_token"]["file"].endswith(":-./deploy/none}")
    assert (ROOT / "deploy/none").read_bytes() == b""


def test_profiles_are_what_they_are_called() -> None:
    profiles: dict[str, list[str]] = {}
    for name, service in SERVICES.items():
        for profile in service.get("profiles", []):
            profiles.setdefault(profile, []).append(name)
    assert profiles == {
        "scale": [
            "replica-one",
            "replica-two",
            "scheduler",
            "worker-one",
            "worker-two",
            "proxy",
            "database",
        ],
        "observe": ["prometheus"],
    }
    assert SERVICES["replica-one"] == SERVICES["replica-two"]
    assert SERVICES["worker-one"] == SERVICES["worker-two"]


def test_services_are_unprivileged_and_reached_from_this_machine_alone() -> None:
    for name in (*OURS, *CLUSTER, "proxy", "prometheus"):
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
    for service in SERVICES.values():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_secrets_are_files_of_settings() -> None:
    for name in OURS:
        assert SERVICES[name]["environment"]["PURSE_SECRETS"] == "/run/secrets"
        for secret in SERVICES[name]["secrets"]:
            # A secret is the value of a setting, or a setting contains the path of its file, as for
            # the files of the certificates.
            named = f"/run/secrets/{secret}" in SERVICES[name]["environment"].values()
            assert secret.removeprefix("purse_") in Settings.model_fields or named
    for service in SERVICES.values():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        for variable, value in service.get("environment", {}).items():
            secret = re.search("PASSWORD|TOKEN|KEY", variable)
            assert not secret or value.startswith("/run/secrets/")
            assert not re.search(r"://\w+:[^@]*@", value)


#: Each third-party image of docker-compose.yml: its variable, its tag and its digest.
IMAGES = re.findall(
    r"\$\{([A-Z]+_IMAGE):-([a-z/]+:[^@}]+)@(sha256:[0-9a-f]{64})\}",
    (ROOT / "docker-compose.yml").read_text("utf-8"),
)
DIGEST = "sha256:" + "5" * 64


def test_every_image_of_others_is_named_by_its_digest() -> None:
    named = {variable: f"{tag}@{digest}" for variable, tag, digest in IMAGES}
    others = {one["image"] for one in SERVICES.values()} - {"privypurse", "privypurse-cluster"}
    built = {one["build"]["args"]["PYTHON_IMAGE"] for one in SERVICES.values() if "build" in one}
    assert others | built == {f"${{{variable}:-{image}}}" for variable, image in named.items()}
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert f"ARG PYTHON_IMAGE={named['PYTHON_IMAGE']}\n" in DOCKERFILE


def renewed(folder: Path, docker: str) -> tuple[int, list[str]]:
    """Renews digests beside a ``docker`` that is this shell script; the status and both files."""
    (folder / "deploy").mkdir()
    for name in ("Dockerfile", "docker-compose.yml", "deploy/pin_images.sh"):
        shutil.copy(ROOT / name, folder / name)
    stub = folder / "bin" / "docker"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\n{docker}\n")
    stub.chmod(0o755)
    environment = {"PATH": f"{stub.parent}:/usr/bin:/bin"}
    script = [folder / "deploy/pin_images.sh"]
    status = subprocess.run(script, env=environment, capture_output=True, check=False).returncode
    files = (folder / name for name in ("Dockerfile", "docker-compose.yml"))
    return status, [file.read_text("utf-8") for file in files]


def test_digests_are_renewed_all_or_none(tmp_path: Path) -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in ("Dockerfile", "docker-compose.yml")]
    mute = '[ "$4" != prom/prometheus:v3.5.0 ]'
    for number, docker in enumerate((f"{mute} && echo {DIGEST}", "exit 1", "echo latest")):
        (folder := tmp_path / str(number)).mkdir()
        assert renewed(folder, docker) == (1, texts)
    (folder := tmp_path / "all").mkdir()
    renewals = [re.sub("sha256:[0-9a-f]{64}", DIGEST, text) for text in texts]
    assert renewed(folder, f"echo {DIGEST}") == (0, renewals)


ROLES = ("scheduler", "worker", "client")


def test_secrets_are_made_once_and_never_committed(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "deploy/make_secrets.sh", tmp_path)
    contents: list[dict[str, str]] = []
    certificates: list[dict[str, str]] = []
    for _ in range(2):
        subprocess.run([script], check=True)
        files = [one for one in (tmp_path / "secrets").iterdir() if one.is_file()]
        contents.append({one.name: one.read_text("ascii") for one in files})
        cluster = (tmp_path / "secrets" / "cluster").iterdir()
        certificates.append({one.name: one.read_text("ascii") for one in cluster})
    assert contents[0] == contents[1]
    assert certificates[0] == certificates[1]
    for role in ROLES:
        certificate = load_pem_x509_certificate(certificates[0][f"{role}.pem"].encode())
        [unit] = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
        assert unit.value == role
        authority = load_pem_x509_certificate(certificates[0]["ca.pem"].encode())
        certificate.verify_directly_issued_by(authority)
    # Newer TLS libraries check certificates strictly, so the certificates must pass the strict
    # check too.
    cluster_folder = tmp_path / "secrets" / "cluster"
    strictly = ["openssl", "verify", "-x509_strict", "-CAfile", cluster_folder / "ca.pem"]
    subprocess.run([*strictly, *(cluster_folder / f"{role}.pem" for role in ROLES)], check=True)
    # The private key of the certificate authority is not kept, so nobody can sign another
    # certificate.
    assert set(certificates[0]) == {"ca.pem"} | {
        f"{role}.{kind}" for role in ROLES for kind in ("pem", "key")
    }
    assert {f"./deploy/secrets/{name}" for name in contents[0]} >= {
        COMPOSE["secrets"]["purse_database_password"]["file"]
    }
    assert "metrics_token" in contents[0]
    assert all(re.fullmatch("[0-9a-f]{64}", secret) for secret in contents[0].values())
    assert len(set(contents[0].values())) == 2
    assert (tmp_path / "secrets").stat().st_mode & 0o77 == 0
    ignored = (ROOT / "deploy/secrets/.gitignore").read_text("utf-8")
    assert ignored == "*\n!.gitignore\n"


def test_prometheus_reads_the_token_from_its_file_and_finds_every_service() -> None:
    [job] = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text("utf-8"))["scrape_configs"]
    mounted = [f"/run/secrets/{secret}" for secret in SERVICES["prometheus"]["secrets"]]
    assert mounted == [job["authorization"]["credentials_file"]]
    [discovery] = job["dns_sd_configs"]
    assert (tuple(discovery["names"]), discovery["port"]) == (OURS, 8000)
    mounts = SERVICES["prometheus"]["volumes"]
    assert "./deploy/prometheus.yml:/etc/prometheus/prometheus.yml:ro" in mounts


def test_the_proxy_is_in_front_of_both_replicas() -> None:
    text = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    assert "{$REPLICAS:replica-one:8000 replica-two:8000}" in text
    assert set(SERVICES["proxy"]["depends_on"]) == {"replica-one", "replica-two"}
    assert "./deploy/Caddyfile:/etc/caddy/Caddyfile:ro" in SERVICES["proxy"]["volumes"]
    check = [tool("caddy"), "validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]
    report = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert report.returncode == 0, report.stderr


def test_every_process_of_the_cluster_has_its_own_role_and_no_other() -> None:
    roles = {"scheduler": "scheduler", "worker-one": "worker", "worker-two": "worker"}
    roles |= {"replica-one": "client", "replica-two": "client"}
    for name, role in roles.items():
        secrets = {secret for secret in SERVICES[name]["secrets"] if secret.startswith("cluster_")}
        assert secrets == {"cluster_ca", f"cluster_{role}_certificate", f"cluster_{role}_key"}
        for kind, secret in (("CERT", "certificate"), ("KEY", "key")):
            path = f"/run/secrets/cluster_{role}_{secret}"
            assert SERVICES[name]["environment"][f"PURSE_CLUSTER_{kind}"] == path
    for name in CLUSTER[1:]:
        assert SERVICES[name]["volumes"] == SERVICES["replica-one"]["volumes"]
    assert "volumes" not in SERVICES["scheduler"]


#: The variables by which a process allocates memory, in ``run`` and in the image.
KEPT = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456"
ALLOCATION = {
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": f"glibc.malloc.hugetlb=1:{KEPT}",
}


def test_processes_of_a_checkout_and_of_the_image_allocate_alike() -> None:
    exported = [f"{name}={value}" for name, value in ALLOCATION.items()]
    run = (ROOT / "run").read_text("utf-8")
    assert "".join(f"\nexport {one}" for one in exported) + "\n" in run
    # One build stage times the compiled kernels and the other runs the service, so both need the
    # same settings of memory allocation.
    stages = DOCKERFILE.split("\nFROM ")[1:]
    for one in exported:
        assert [stage.count(f" {one}") for stage in stages] == [1, 1]


def said_with(variables: dict[str, str], program: str) -> str:
    """The output of a Python program under these variables; needs glibc from 2.35 on."""
    libc, release = platform.libc_ver()
    if libc != "glibc" or tuple(map(int, release.split("."))) < (2, 35):
        pytest.skip("only glibc from 2.35 on allocates in huge pages")
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return said.stdout


def test_objects_lie_in_huge_pages() -> None:
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not offered.exists() or "[never]" in offered.read_text():
        pytest.skip("this machine has no huge pages")
    objects = (
        "kept = [str(n) for n in range(500_000)]; print(open('/proc/self/smaps_rollup').read())"
    )
    (kilobytes,) = re.findall(r"AnonHugePages: +(\d+) kB", said_with(ALLOCATION, objects))
    assert int(kilobytes) > 20_000


def test_freed_memory_is_used_again_without_page_faults() -> None:
    program = """
import resource
import numpy as np

def use():
    for _ in range(100):
        arrays = [np.ones(1 << 17) for _ in range(8)]
        del arrays

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

use()
before = faults()
use()
print(faults() - before)
"""
    assert int(said_with(ALLOCATION, program)) < 50
    given_back = {**ALLOCATION, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    assert int(said_with(given_back, program)) > 100, "glibc keeps freed memory by itself now"
