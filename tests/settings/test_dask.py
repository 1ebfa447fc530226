"""A real scheduler with two worker processes: the same bits as one process, whoever is lost or comes late."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato
from sfumato import Bounds, InputError, Ledger, PrivateSIR, progress, scan
from sfumato.cli.app import app
from sfumato.methods import FAMILY, load
from sfumato.privacy.budget import Budget
from sfumato.settings import adder_of
from sfumato.statistics.histograms import OctaveHistograms

pytestmark = pytest.mark.filterwarnings("ignore")  # of the engine; nothing of ours is tested by warnings here
dask = pytest.importorskip("sfumato.settings.dask")
NAMES = ["a", "b", "c", "d"]
BOX = Bounds(-6, 6)
MARK = 4242.424242


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 4))
    columns = {name: x[:, j] for j, name in enumerate(NAMES)}
    response = {"y": x[:, 0] + rng.normal(size=4000), "kind": np.where(x[:, 0] > 0, "ash", "oak")}
    table = pa.table(columns | response | {"who": rng.integers(0, 900, 4000), "seen": np.arange(4000) % 3 > 0})
    path = tmp_path_factory.mktemp("cluster") / "table.parquet"
    pq.write_table(table, path, row_group_size=250)
    return path


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with dask.local_cluster(2, local_directory=str(tmp_path_factory.mktemp("scratch"))) as client:
        yield client


CASES = {
    "descent": (PrivateSIR(bounds=BOX, method="descent", picture=True), {"response": "y"}),
    "one-shot": (PrivateSIR(bounds=BOX, method="one-shot"), {"response": "y"}),
    "bounds found": (PrivateSIR(bounds="search"), {"response": "y"}),
    "classes found": (PrivateSIR(bounds=BOX), {"response": "kind"}),
    "persons": (PrivateSIR(bounds=BOX, rows_per_person=2), {"response": "y", "person": "who"}),
    "sparse sir": (sfumato.PrivateSparseSIR(bounds=BOX, max_features=2), {"response": "y"}),
    "sparse pca": (sfumato.PrivateSparsePCA(bounds=BOX, max_features=2), {}),
    "pca": (sfumato.PrivatePCA(2, bounds="search"), {}),
    "cca": (sfumato.PrivateCCA(1, bounds=BOX, y_bounds=BOX), {"second": ["y"]}),
    "lda": (sfumato.PrivateLDA(bounds=BOX, classes=["ash", "oak"]), {"response": "kind", "classes": ["ash", "oak"]}),
    "several responses": (sfumato.PrivateMultiSIR(bounds=BOX), {"second": ["y", "who"]}),
    "times cut short": (sfumato.PrivateCensoredSIR(bounds=BOX), {"second": ["y", "seen"]}),
    "save": (sfumato.PrivateSAVE(bounds=BOX), {"response": "y"}),
    "dr": (load(FAMILY["dr"])(bounds=BOX), {"response": "y"}),
    "phd": (load(FAMILY["phd"])(bounds=BOX), {"response": "y"}),
}


def fitted(estimator, path, options, client=None):
    source = scan(path, features=NAMES, cluster=client, **options)
    return estimator.set_params(random_state=5).fit(source)


def outcome(estimator):
    found = vars(estimator)
    return {name: found[name] for name in sorted(found) if isinstance(found[name], np.ndarray | float | int)}


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_gives_the_bits_of_one_process(case, path, client):
    estimator, options = CASES[case]
    alone, together = outcome(fitted(estimator, path, options)), outcome(fitted(estimator, path, options, client))
    assert list(alone) == list(together) and len(alone) > 3
    for name, value in alone.items():
        assert np.array_equal(value, together[name]), name


def test_one_large_row_group_is_shared_by_the_workers(tmp_path, client):
    x = np.random.default_rng(7).normal(size=(2, 120_000))
    pq.write_table(pa.table({"a": x[0], "b": x[1]}), tmp_path / "large.parquet")
    source, alone = (scan(tmp_path / "large.parquet", cluster=cluster) for cluster in (client, None))
    adder, query = adder_of(source), OctaveHistograms(2)
    assert np.array_equal(adder.sum(query), adder_of(alone).sum(query))
    assert len(adder._homes) == 4 and len(set(adder._homes.values())) == 2


class KillOne:
    """Kills a worker as soon as the first task of a pass over the records is done."""

    def __init__(self, pid):
        self.pid, self.done = pid, threading.Event()

    def planned(self, purposes):
        """Of no interest."""

    def started(self, purpose):
        """Of no interest."""

    def advanced(self, fraction):
        if not self.done.is_set():
            self.done.set()
            os.kill(self.pid, signal.SIGKILL)


def test_a_worker_killed_in_mid_sum_changes_no_bit(path, client):
    estimator, options = CASES["descent"]
    alone = fitted(estimator, path, options).directions_
    victim = next(iter(client.run(os.getpid).values()))
    with progress.listening(killer := KillOne(victim)):
        together = fitted(estimator, path, options, client).directions_
    assert killer.done.is_set() and victim not in client.run(os.getpid).values()
    assert np.array_equal(alone, together)
    client.wait_for_workers(2, timeout=60)


def test_a_worker_that_comes_late_is_given_its_share(path, client):
    source = scan(path, features=NAMES, response="y", cluster=client)
    query, adder = OctaveHistograms(4), adder_of(source)
    total = adder.sum(query)
    client.cluster.scale(3)
    client.wait_for_workers(3, timeout=60)
    assert np.array_equal(adder.sum(query), total)
    assert len(set(adder._homes.values())) == 3
    client.cluster.scale(2)


def test_what_one_process_refuses_a_cluster_refuses_with_the_same_sentence_and_nothing_spent(tmp_path, client):
    table = pa.table({"a": [1.0, 2.0, None], "b": [MARK, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "holes.parquet", row_group_size=1)
    sentences = []
    for where in (None, client):
        ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace")
        with pytest.raises(InputError) as caught:
            PrivateSIR(ledger=ledger).fit(scan(tmp_path / "holes.parquet", response="y", cluster=where))
        sentences.append(str(caught.value))
        assert len(ledger) == 0
    assert sentences[0] == sentences[1] and "'a'" in sentences[0]


def test_nothing_of_a_record_is_left_with_the_engine(tmp_path, path, client):
    """Neither in what its processes hold, nor in its logs or files, nor in what the client keeps."""
    table = pq.read_table(path)
    marked = pa.concat_tables([table, table.slice(0, 1).set_column(0, "a", [[MARK]])])
    pq.write_table(marked, tmp_path / "marked.parquet", row_group_size=250)
    ours = fitted(PrivateSIR(bounds=BOX), tmp_path / "marked.parquet", {"response": "y"}, client)
    deadline = time.monotonic() + 30.0
    while client.futures or any(client.run(_stored).values()):  # they are told to forget, and do so in their own time
        assert time.monotonic() < deadline
        time.sleep(0.05)
    logs = repr([client.get_scheduler_logs(), client.get_worker_logs(), client.get_events()])
    files = b"".join(entry.read_bytes() for entry in _files(client))
    assert "4242.42" not in logs and struct.pack("<d", MARK) not in files and b"4242.42" not in files
    assert "4242.42" not in repr(vars(ours))


def _stored(dask_worker):
    return len(dask_worker.data)


def _files(client):
    for folder in set(client.run(_folder).values()):
        yield from (entry for entry in Path(folder).parent.rglob("*") if entry.is_file())


def _folder(dask_worker):
    return dask_worker.local_directory


def test_nobody_else_can_connect_and_there_is_nothing_to_look_at(client):
    import psutil

    us = psutil.Process()
    open_ports = [
        port.laddr
        for process in (us, *us.children(recursive=True))
        for port in process.net_connections("tcp")
        if port.status == psutil.CONN_LISTEN
    ]
    assert len(open_ports) > 2 and {port.ip for port in open_ports} <= {"127.0.0.1", "::1"}
    port = client.scheduler_info()["services"]["dashboard"]
    for page in ("info/main/workers.html", "status", "json/counts.json", "metrics"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)


def test_a_fit_at_the_terminal_is_added_up_over_tls(path, tmp_path):
    """Certificates are those of Dask's own settings."""
    import distributed

    pytest.importorskip("cryptography", reason="Dask makes certificates with it; pip install cryptography.")
    security = distributed.Security.temporary()
    environment = os.environ | {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(tmp_path / "ca.pem")}
    (tmp_path / "ca.pem").write_text(security.tls_ca_file)
    for name, text in (("CERT", security.tls_client_cert), ("KEY", security.tls_client_key)):
        (tmp_path / f"{name}.pem").write_text(text)
        environment[f"DASK_DISTRIBUTED__COMM__TLS__CLIENT__{name}"] = str(tmp_path / f"{name}.pem")
    with dask.local_cluster(1, protocol="tls", security=security) as client:
        address = client.scheduler.address
        assert address.startswith("tls://")
        words = ["fit", str(path), "-y", "y", "--features", "a,b,c,d", "--seed", "3", "--out"]
        assert CliRunner().invoke(app, [*words, str(tmp_path / "one")]).exit_code == 0
        both = [Path(sys.executable).parent / "sfumato", *words, tmp_path / "both", "--memory", "300MB"]
        order = [*map(str, both), "--cluster", address]
        subprocess.run(order, check=True, capture_output=True, env=environment, timeout=300)
    one, other = ((tmp_path / folder / "directions.csv").read_bytes() for folder in ("one", "both"))
    assert one == other


def test_sums_do_not_cross_a_network_in_the_clear():
    for address in ("tcp://192.0.2.7:8786", "192.0.2.7:8786"):
        with pytest.raises(InputError, match="without TLS"):
            dask.connect(address)


def test_workers_that_write_to_a_disk_are_refused(path):
    import distributed
    from dask import config

    with (
        config.set({"distributed.worker.memory.target": 0.6, "distributed.worker.memory.spill": 0.7}),  # Dask's own
        distributed.LocalCluster(1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(InputError, match="MEMORY__SPILL=False"),
    ):
        fitted(PrivateSIR(bounds=BOX), path, {"response": "y"}, client)


def test_a_cluster_without_workers_is_given_up(path, monkeypatch):
    monkeypatch.setattr(dask, "PATIENCE", 0.5)
    with dask.local_cluster(0) as client, pytest.raises(dask.ClusterError, match="no worker"):
        fitted(PrivateSIR(bounds=BOX), path, {"response": "y"}, client)


def test_what_is_no_cluster_and_what_workers_cannot_open_is_refused(path, monkeypatch):
    with pytest.raises(InputError, match="cluster must be"):
        PrivateSIR().fit(scan(path, response="y", features=NAMES, cluster=7))
    monkeypatch.setattr(dask, "PATIENCE", 1.0)
    with pytest.raises(InputError, match="no scheduler answers"):
        PrivateSIR().fit(scan(path, response="y", features=NAMES, cluster="tcp://127.0.0.1:9"))
    with pytest.raises(InputError, match="workers read files themselves"):
        scan(pq.read_table(path), response="y", features=NAMES, cluster="tcp://127.0.0.1:9")
