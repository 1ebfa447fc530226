"""`sfumato federated`, and the Flower commands behind it."""

import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.errors import InputError
from sfumato.federated.flower.coordination import superlink_command
from sfumato.federated.simulation import split_by_column
from sfumato.simulate import he


@pytest.fixture
def table(tmp_path):
    sample = he("I", n=900, p=3, random_state=0)
    columns = {f"x{j}": sample.x[:, j] for j in range(3)} | {"y": sample.y}
    hospital = np.array(["north", "south", "west"])[np.arange(900) % 3]
    path = tmp_path / "data.csv"
    pyarrow.csv.write_csv(pa.table(columns | {"hospital": hospital}), path)
    return str(path)


def test_a_file_becomes_one_site_for_each_value_of_a_column(table):
    sites = split_by_column(table, "hospital", "y")
    assert list(sites) == ["north", "south", "west"]
    assert all(site.count() == 300 and site.feature_names == ("x0", "x1", "x2") for site in sites.values())


def test_a_column_that_is_not_there_is_named(table):
    with pytest.raises(InputError, match="by: there is no column 'clinic'"):
        split_by_column(table, "clinic", "y")


def test_simulate_prints_every_sites_spending(table):
    from typer.testing import CliRunner

    from sfumato.cli.federated import federated_app

    done = CliRunner().invoke(federated_app, ["simulate", table, "--by", "hospital", "-y", "y", "--epsilon", "1"])
    assert done.exit_code == 0, done.output
    assert re.match("(Reliable|Weak|Noise)", done.output)  # whether to believe it comes first
    assert all(f"{name}: epsilon 1" in done.output for name in ("north", "south", "west"))
    assert re.search(r"^ *feature +direction 1", done.output, re.M) and re.search(
        r"^ *x0 +[+-]0\.\d{4}", done.output, re.M
    )


def test_simulate_leaves_small_sites_out_and_takes_own_units(table):
    from typer.testing import CliRunner

    from sfumato.cli.federated import federated_app

    command = ["simulate", table, "--by", "hospital", "-y", "y", "--directions", "1", "--method", "descent"]
    done = CliRunner().invoke(federated_app, [*command, "--own-units"])
    assert done.exit_code == 0 and "north: epsilon 1" in done.output, done.output
    lost = CliRunner().invoke(federated_app, [*command, "--least", "301"])
    assert lost.exit_code != 0 and "none is there" in str(lost.exception)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["--estimator", "pca", "--directions", "2"], 8),
        (
            ["--estimator", "cca", "--second", "y", "--directions", "1", "--second-lower", "-9", "--second-upper", "9"],
            4,
        ),
        (["--estimator", "phd", "-y", "y", "--directions", "1"], 3),
    ],
)
def test_simulate_fits_any_of_the_family(table, options, numbers):
    from typer.testing import CliRunner

    from sfumato.cli.federated import federated_app

    command = ["simulate", table, "--by", "hospital", "--lower", "-6", "--upper", "6"]
    done = CliRunner().invoke(federated_app, [*command, *options])
    assert done.exit_code == 0, done.output
    assert "north: epsilon 1" in done.output
    assert len(re.findall(r"[+-]\d\.\d{4}", done.output)) == numbers


NEW = {"--create-ledger": None}


@pytest.fixture
def keys(tmp_path):
    for name in ("ca.crt", "server.crt", "server.key", "north", "north.pub"):
        (tmp_path / name).write_text("-")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"--ca": "nowhere.crt"}, "ca: there is no file"),
        ({"--key": "nowhere"}, "key: there is no file"),
        ({}, r"ledger: there is no /.*/north\.jsonl; .*sfumato ledger create"),
        ({"--cap": "1"}, r"ledger: there is no /.*/north\.jsonl; .*--create-ledger --cap 3"),
        ({"--create-ledger": None}, "cap: --create-ledger needs --cap"),
        ({"--create-ledger": None, "--cap": "1", "--ledger": "north"}, "create-ledger: /.*/north exists already"),
        ({**NEW, "--cap": "1", "--response": "z"}, "'z'"),
        ({**NEW, "--cap": "1", "--relation": "swap"}, "relation must be 'replace' or 'add-remove'"),
        ({**NEW, "--cap": "1", "--coordinator": "localhost"}, "coordinator must be host:port"),
        ({**NEW, "--cap": "1", "--coordinator": "https://localhost:8000"}, "coordinator must be host:port"),
        ({**NEW, "--cap": "1", "--features": "x0,hospital"}, "column 'hospital' is not numeric"),
        ({**NEW, "--cap": "-1"}, "epsilon"),
        ({**NEW, "--cap": "1", "--ask": None}, "ask: there is no terminal"),
    ],
)
def test_a_site_is_told_what_is_missing_before_anything_runs(table, keys, monkeypatch, change, sentence):
    from sfumato.cli.app import app

    monkeypatch.setattr("sfumato.federated.flower.keys.demand_flower", lambda: None)
    monkeypatch.chdir(keys)
    given = {"--response": "y", "--name": "north", "--coordinator": "h:1", "--ca": "ca.crt", "--key": "north"}
    given |= {"--features": "x0,x1,x2"} | change
    from typer.testing import CliRunner

    before = sorted(keys.iterdir())
    words = [word for pair in given.items() for word in pair if word is not None]
    done = CliRunner().invoke(app, ["federated", "site", table, *words])
    assert done.exit_code == 2
    assert sorted(keys.iterdir()) == before
    assert re.search(sentence, done.output + str(done.exception)), done.output


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"--certificate": "nowhere"}, "certificate: there is no file"),
        ({"--site": "nowhere.pub"}, "site: there is no file"),
        ({"--minimum": "2"}, "minimum must be from 1 to the 1 sites"),
        ({"--lower": "a", "--upper": "1"}, "lower and upper must be numbers"),
        ({"--epsilon": "-1"}, "epsilon"),
        ({"--relation": "swap"}, "relation must be 'replace' or 'add-remove'"),
        ({"--method": "dp-sir"}, "method"),
        ({"--directions": "none"}, "directions"),
        (
            {"--lower": "0", "--upper": "1", "--own-units": None},
            "own-units: it is for sir, save, dr, phd, lda, cca, without --lower",
        ),
        ({"--sparse": None, "--estimator": "pca"}, "sparse: it is for sir, not for pca"),
        ({"--estimator": "pca", "--own-units": None}, "own-units: it is for sir"),
        ({"--estimator": "pca", "--slices": "3"}, "slices: pca takes no --slices"),
        ({"--estimator": "pca", "--second-lower": "0", "--second-upper": "1"}, "pca takes no --second"),
        ({"--estimator": "dp-sir", "--lower": "0", "--upper": "1"}, "estimator must be one of PrivateSIR"),
        ({"--sparse": None, "--method": "descent"}, "method"),
        ({"--port": "0"}, "port"),
    ],
)
def test_a_coordinator_is_told_what_is_wrong_before_anything_runs(keys, monkeypatch, change, sentence):
    from typer.testing import CliRunner

    from sfumato.cli.app import app

    monkeypatch.setattr("sfumato.federated.flower.keys.demand_flower", lambda: None)
    monkeypatch.chdir(keys)
    given = {"--site": "north.pub", "--certificate": "server.crt", "--key": "server.key", "--ca": "ca.crt"} | change
    words = [word for pair in given.items() for word in pair if word is not None]
    done = CliRunner().invoke(app, ["federated", "server", *words])
    assert done.exit_code == 2
    assert re.search(sentence, done.output + str(done.exception)), done.output
    assert not (keys / "federation").exists()


def test_a_server_that_is_stopped_leaves_no_process_behind(tmp_path):
    from sfumato.federated.flower.coordination import run_server

    script = "sleep 60 & echo $! > child; wait"
    with run_server(["sh", "-c", f"cd {tmp_path}; {script}"], os.environ, tmp_path / "log") as process:
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text().strip():
            time.sleep(0.05)
    child = int((tmp_path / "child").read_text())
    assert process.poll() is not None
    for _ in range(100):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the helper is still running")


def test_a_servers_command_asks_for_tls_registered_nodes_and_no_apps(tmp_path):
    command = superlink_command(
        "127.0.0.1", 8000, *(tmp_path / name for name in ("secret", "nodes", "ca", "crt", "key"))
    )
    assert "--enable-supernode-auth" in command and "--ssl-certfile" in command and "--insecure" not in command
    assert command[command.index("--isolation") + 1] == "process" and "sfumato.federated.flower.gate" in command


@pytest.mark.parametrize(
    ("path", "told", "status"),
    [
        ("/v1/fleet/pull-messages", None, 200),
        ("/v1/fleet/register-node", None, 403),
        ("/v1/fleet/unregister-node", None, 403),
        ("/v1/control/start-run", None, 403),
        ("/v1/control/register-node", b"guessed", 403),
        ("/v1/control/register-node", "right", 200),
        ("/v1/fleet/../control/start-run", None, 403),
        ("/docs", None, 403),
    ],
)
def test_the_gate_lets_sites_pass_to_what_sites_need_and_nobody_else_to_anything(path, told, status):
    from sfumato.federated.flower.gate import HEADER, Gate, password_of

    async def server(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent = []

    async def send(event):
        sent.append(event)

    password = password_of(b"secret")
    headers = [] if told is None else [(HEADER.encode(), password.encode() if told == "right" else told)]
    gate = Gate(server, password)(({"type": "http", "path": path, "headers": headers}), None, send)
    with pytest.raises(StopIteration):
        gate.send(None)
    assert sent[0]["status"] == status and b"secret" not in password.encode()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_coordinators_options_reach_the_estimator(sparse):
    from sfumato.bounds import Bounds
    from sfumato.cli.federated import _estimator
    from sfumato.study import EstimatorOptions

    name = "sparse-sir" if sparse else "sir"
    wishes = EstimatorOptions(name, 2.0, 1e-5, None, "add-remove", None, "3", "auto", ["a", "b"], picture=False)
    made = _estimator(wishes, Bounds(-6, 6))
    assert (made.epsilon, made.delta, made.relation, made.n_directions) == (2.0, 1e-5, "add-remove", 3)
    assert made.classes == ["a", "b"] and made.bounds == Bounds(-6, 6)


@pytest.mark.parametrize(("times", "made"), [(1, ["answer"]), (2, [])])
def test_an_interruption_waits_for_an_answer_that_is_being_made_and_the_second_does_not(times, made):
    from sfumato.signals import defer_interrupts

    done = []

    def answer():
        with defer_interrupts():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("answer")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            answer()
        assert done == made and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("host", "sentence"), [("no.such.host.invalid", "host"), ("127.0.0.1", "port")])
def test_a_place_where_no_server_can_listen_is_refused(host, sentence):
    from sfumato.federated.flower.coordination import refuse_if_taken

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=f"^{sentence}: "):
            refuse_if_taken(host, taken.getsockname()[1])


LISTEN = """
import socket, sys
place = socket.socket(int(sys.argv[1]))
place.bind((sys.argv[2], int(sys.argv[3])))
place.listen()
place.accept()
"""


@pytest.mark.parametrize(("host", "reached"), [("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")])
def test_a_server_is_found_where_it_listens_by_either_version_of_the_protocol(host, reached, tmp_path):
    from sfumato.federated.flower.coordination import Address, await_listener, run_server

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
    except OSError:
        pytest.skip("this machine has no IPv6")
    command, log = [sys.executable, "-c", LISTEN, str(int(family)), host, str(port)], tmp_path / "log"
    with run_server(command, os.environ, log) as server:
        await_listener(host, port, server, log, seconds=60.0)
    files = (tmp_path / "ca", tmp_path / "certificate", tmp_path / "key")
    assert Address(host, port, *files).reached_at == f"{reached}:{port}"


def test_databases_of_sites_long_gone_are_deleted_and_no_others(tmp_path):
    from sfumato.federated.flower.coordination import FORGOTTEN, clean_databases

    for name, age in (
        ("nodes-aa.db", 2),
        ("nodes-bb.db", 2),
        ("nodes-bb.db-wal", 2),
        ("nodes-cc.db", 0),
        ("other.db", 2),
    ):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age * FORGOTTEN,) * 2)
    clean_databases(tmp_path, "nodes-aa.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nodes-aa.db", "nodes-cc.db", "other.db"]
