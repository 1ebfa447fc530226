"""The compose file, as far as it can be tested without Docker: its commands are ours, and its folders agree."""

import json
import re
import shlex
from pathlib import Path, PurePosixPath

import pytest
import typer
import yaml

from sfumato.cli.app import app

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "deploy" / "compose.yaml"
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
SITES = [name for name in SERVICES if name != "coordinator"]


def _image(target):
    """Instructions of a stage of the Dockerfile, by their names."""
    stage = re.split(r"(?m)^FROM \S+ AS ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = next(text for text in stage if text.split()[0] == target).splitlines()
    return {line.split()[0]: line.split(" ", 1)[1] for line in lines if re.match(r"[A-Z]+ ", line)}


def _parsed(name):
    """What our own command line makes of a service's command; it exits on any word that it does not know."""
    service = SERVICES[name]
    words = service.get("entrypoint") or json.loads(_image(service["build"]["target"])["ENTRYPOINT"])
    assert words[0] == "sfumato"
    told = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", service["command"])
    command = typer.main.get_command(app)
    for word in words[1:]:
        command = command.commands[word]
    return command.make_context(words[-1], shlex.split(told)).params


def test_there_are_a_coordinator_and_three_sites_of_one_image():
    assert sorted(SERVICES) == ["coordinator", "north", "south", "west"]
    for service in SERVICES.values():
        assert (COMPOSE.parent / service["build"]["context"] / "Dockerfile").is_file()
        user = re.fullmatch(r"\$\{SFUMATO_USER:-(.*)\}", service["user"])[1]
        assert user == _image(service["build"]["target"])["USER"]
        assert service["read_only"] is True and service["tmpfs"] == ["/tmp"]  # where the image's HOME is


@pytest.mark.parametrize("name", SERVICES)
def test_every_file_that_a_command_names_is_in_the_folder_that_is_mounted(name):
    service, told = SERVICES[name], _parsed(name)
    host, inside = service["volumes"][0].split(":")
    assert (host, len(service["volumes"])) == (f"./{name}", 1) and service["working_dir"] == inside
    files = [told["folder"], told["ca"], told["key"]]
    files += told["site"] + [told["certificate"]] if name == "coordinator" else [told["ledger"], told["data"]]
    for file in files:
        assert not PurePosixPath(str(file)).is_absolute() and ".." not in PurePosixPath(str(file)).parts


@pytest.mark.parametrize("name", SITES)
def test_sites_find_the_coordinator_who_knows_their_keys_and_asks_for_what_they_allow(name):
    server, site = _parsed("coordinator"), _parsed(name)
    assert site["name"] == name and site["coordinator"] == f"coordinator:{server['port']}"
    assert Path(f"{site['key']}.pub") in server["site"] and len(server["site"]) == len(SITES)
    assert SERVICES["coordinator"]["ports"] == [f"{server['port']}:{server['port']}"] and server["host"] == "0.0.0.0"
    assert server["epsilon"] <= site["most"] and not site["create_ledger"]


def test_the_page_names_the_services_and_how_the_file_was_checked():
    page = (ROOT / "docs" / "howto" / "federated-runbook.md").read_text(encoding="utf-8")
    assert "docker compose -f deploy/compose.yaml up coordinator" in page and "podman-compose" in page
