"""Disks whose locks do not hold, and disks that are somewhere else."""

import contextlib
import os

import pytest

from sfumato import Budget, BudgetError, InputError
from sfumato.privacy.ledger import Entry, FileLedger, disk
from sfumato.privacy.plan import Line, Plan

ONE = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(Budget.zcdp(0.01))


def _worker(path, out):
    """Runs until it is refused; says which releases it was allowed to make."""
    with contextlib.suppress(BudgetError, InputError):
        for i in range(6):
            ledger = FileLedger(path)
            ledger.reserve(ONE)
            for j, event in enumerate(ONE.events):
                name = f"{os.getpid()}-{i}-{j}"
                ledger.record(Entry(name, "q", event, 1.0, 2.0, 0.5, "replace"))
                os.write(out, f"{name}\n".encode())


def test_without_locks_no_release_is_ever_missing_from_a_ledger_that_claims_to_be_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_lock", lambda fd, path, write: None)
    clashes = 0
    for i in range(30):
        path = tmp_path / f"{i}.jsonl"
        FileLedger(path, Budget.zcdp(1.0))
        read, write = os.pipe()
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                try:
                    _worker(path, write)
                finally:
                    os._exit(0)
            children.append(child)
        os.close(write)
        for child in children:
            os.waitpid(child, 0)
        with os.fdopen(read, "rb") as pipe:
            released = set(pipe.read().decode().split())
        ledger = FileLedger(path)
        if ledger.rho == float("inf"):
            clashes += 1  # two wrote at once: the ledger is damaged and says so
            assert all(name.encode() in path.read_bytes() for name in released)  # and nothing was overwritten
        else:
            assert released <= {entry.purpose for entry in ledger.entries}
    assert clashes > 0  # else nothing was tested


MOUNTS = """21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
22 21 0:50 / /home rw - nfs4 server:/home rw
23 21 0:51 / /data/my\\040share rw - cifs //server/share rw
24 21 0:52 / /data/ssh rw - fuse.sshfs me@there: rw
25 22 8:2 / /home/me/local rw - xfs /dev/sdb1 rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/var/l.jsonl", None),
        ("/home/you/l.jsonl", "nfs4"),
        ("/home/me/local/l.jsonl", None),
        ("/homes/l.jsonl", None),
        ("/data/my share/l.jsonl", "cifs"),
        ("/data/ssh/l.jsonl", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_mount_point(place, kind, monkeypatch):
    monkeypatch.setattr(disk.Path, "read_text", lambda path, **_: MOUNTS)
    assert disk.network(disk.Path(place)) == kind


def test_a_network_disk_is_refused_unless_told_and_a_new_ledger_remembers(tmp_path, monkeypatch):
    local = FileLedger(tmp_path / "local.jsonl", Budget.zcdp(1.0))
    monkeypatch.setattr(disk, "network", lambda path: "nfs4")
    for make in (lambda: FileLedger(tmp_path / "l.jsonl", Budget.zcdp(1.0)), lambda: FileLedger(local.path)):
        with pytest.raises(InputError, match=r"network file system \(nfs4\).*allow_network=True"):
            make()
    assert not (tmp_path / "l.jsonl").exists()
    FileLedger(tmp_path / "l.jsonl", Budget.zcdp(1.0), allow_network=True)
    FileLedger(tmp_path / "l.jsonl").begin().reserve(ONE)
    assert FileLedger(local.path, allow_network=True).begin().rho == 0


def test_two_processes_that_create_one_ledger_create_one(tmp_path):
    path = tmp_path / "l.jsonl"
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                FileLedger(path, Budget.zcdp(1.0)).reserve(ONE)
                code = 0
            os._exit(code)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert len(FileLedger(path).runs()) == 8 and sorted(os.listdir(tmp_path)) == ["l.jsonl"]
