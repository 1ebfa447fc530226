"""Runs over plain HTTP, without a script: fits that happen once, are stopped, survive their server, leave results."""

import csv
import io
import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.web.served import Client, serving, write_slow

from sfumato import Budget, FileLedger
from sfumato.errors import InputError
from sfumato.web.declaration import Declaration
from sfumato.web.desk import Desk
from sfumato.web.pages import _size

SLOW = Declaration("slow.csv", response="y", features=tuple(f"x{i}" for i in range(8)), picture=False)
FAST = Declaration("patients.csv", response="los", features=("age", "bmi", "dose"), bounds={"age": (0.0, 120.0)})


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("slow") / "slow.csv"
    write_slow(path)
    return path


def ledger(folder: Path) -> FileLedger:
    return FileLedger(folder / "sfumato" / "account.jsonl")


def wait(client: Client, run: str, until, seconds: float = 120.0) -> dict:
    """The progress of a run, once it is as wanted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = json.loads(client.get(f"/runs/{run}/progress").text)
        if until(now):
            return now
        time.sleep(0.05)
    raise AssertionError(now)


def declared(folder: Path, said: Declaration) -> str:
    desk = Desk(folder)
    desk.open()
    return desk.declare(said).id


def test_what_is_no_number_of_records_is_not_supposed():
    """Python reads no more than 4,300 digits, and a float takes no more than 308."""
    assert [_size(n) for n in ("9" * 5_000, "1" + "0" * 400, "0", "", "many", "-1", "²")] == [None] * 7
    assert _size("20000") == 20_000


@pytest.mark.parametrize("name", ["a" * 5_000, "0" * 16, "%2e%2e"])
def test_a_name_that_no_run_has_is_one_sentence(name, served):
    answer = served.get(f"/runs/{name}")
    assert answer.status == 422 and "there is no such run" in answer.text


def test_a_fit_asked_for_by_many_at_once_is_one_fit_with_all_its_results(folder, patients):
    run = declared(folder, FAST)
    cells = {cell for row in csv.reader(patients.read_text().splitlines()) for cell in row if "." in cell}
    seen = []
    with serving(folder) as (_, client):
        client.enter()
        seen.append(client.get(f"/runs/{run}").text)
        asked = [threading.Thread(target=client.post, args=(f"/runs/{run}/fit",)) for _ in range(4)]
        for each in asked:
            each.start()
        for each in asked:
            each.join()
        wait(client, run, lambda now: now["state"] == "done")
        assert client.post(f"/runs/{run}/fit").place == f"/runs/{run}"  # back button, and once more
        assert len(ledger(folder).runs()) == 1 and round(ledger(folder).total(), 6) == 1.0
        assert len(ledger(folder).entries) == len(ledger(folder).runs()[0].planned)

        files = {
            name: client.get(f"/runs/{run}/files/{name}") for name in ("report.html", "model.json", "directions.csv")
        }
        assert all(
            answer.status == 200 and "attachment" in answer.headers["Content-Disposition"] for answer in files.values()
        )
        scores = list(csv.reader(io.StringIO(client.post(f"/runs/{run}/scores").text)))
        assert len(scores) == 3001 and scores[0][0] == "direction_1"
        assert not list((folder / "sfumato" / "runs" / run).glob("*/scores.csv"))

        again = client.post(f"/runs/{run}/again").place  # a plan, not a fit
        assert again != f"/runs/{run}" and len(ledger(folder).runs()) == 1
        assert client.post(f"{again}/fit").status == 303
        wait(client, again.removeprefix("/runs/"), lambda now: now["state"] == "done")
        assert len(ledger(folder).runs()) == 2
        compared = client.get(f"/compare?run={run}&run={again.removeprefix('/runs/')}")
        assert compared.status == 200 and "apart" in compared.text
        assert client.get(f"/compare?run={run}").status == 422
        pages = (
            "/",
            "/account",
            "/declare?table=patients.csv",
            f"/runs/{run}",
            f"/runs/{run}/report",
            f"/runs/{run}/forecast",
        )
        seen += [client.get(page).text for page in pages] + [compared.text]
    words = {word for page in seen for word in re.findall(r"-?\d+\.\d+", page)}
    assert len(cells) > 10_000 and words.isdisjoint(cells)  # no page shows a cell


def test_a_fit_that_is_stopped_gives_back_the_rest_and_can_be_planned_again(folder, slow):
    (folder / "slow.csv").symlink_to(slow)  # a link out of the folder is no table
    run = declared(folder, SLOW)
    with serving(folder) as (_, client):
        assert client.enter().post(f"/runs/{run}/fit").status == 422
    (folder / "slow.csv").unlink()
    os.link(slow, folder / "slow.csv")
    other = declared(folder, FAST)
    with serving(folder) as (_, client):
        client.enter().post(f"/runs/{run}/fit")
        # At once: a process takes longer to begin than these two requests.
        page = client.get(f"/runs/{run}").text
        assert 'role="status"' in page and 'http-equiv="refresh"' in page  # without a script the page reloads itself
        assert "another fit is running" in client.post(f"/runs/{other}/fit").text
        wait(client, run, lambda now: now["made"] > 0)
        told = client.post(f"/runs/{run}/stop")
        assert "stop it once more" in client.get(told.place).text or Desk(folder).run(run).state != "running"
        client.post(f"/runs/{run}/stop")
        ended = wait(client, run, lambda now: now["state"] != "running")
        shown = client.get(f"/runs/{run}").text
        spent = ledger(folder)
        assert "all hashes agree" in spent.verify()
        if ended["state"] == "stopped":
            assert "the rest was given back" in shown and 0 < spent.total() < 1.0
        else:  # it was told late enough to finish what had been paid for
            assert round(spent.total(), 6) == 1.0
        assert client.post(f"/runs/{run}/again").place != f"/runs/{run}"


def test_a_fit_outlives_a_server_that_was_killed_and_ends_in_order_with_the_next(folder, slow):
    os.link(slow, folder / "slow.csv")
    run = declared(folder, SLOW)
    with serving(folder) as (process, client):
        client.enter().post(f"/runs/{run}/fit")
        wait(client, run, lambda now: now["made"] > 0)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        with serving(folder) as (_, after):
            after.enter()
            assert wait(after, run, lambda now: True)["state"] in ("running", "done")
            assert after.post(f"/runs/{run}/fit").place == f"/runs/{run}"
    desk, end = Desk(folder), time.monotonic() + 120.0
    while desk.bench.current() is not None:  # it was told to end, and does so in its own time
        assert time.monotonic() < end
        time.sleep(0.05)
    assert desk.run(run).state in ("stopped", "done")
    kept = ledger(folder).runs()
    assert len(kept) == 1 and not kept[0].unspent and "all hashes agree" in ledger(folder).verify()


def test_what_a_fit_complains_of_is_shown_and_nothing_is_spent(served):
    (served.folder / "holes.csv").write_text("a,b,y\n1,2,3\n4,,6\n" + "1,2,3\n" * 200)
    run = declared(served.folder, Declaration("holes.csv", response="y", features=("a", "b"), search=True))
    served.post(f"/runs/{run}/fit")
    wait(served, run, lambda now: now["state"] == "stopped")
    page = served.get(f"/runs/{run}").text
    assert "has missing or infinite values" in page and "Nothing was spent." in page
    assert ledger(served.folder).total() == 0.0
    assert served.post(f"/runs/{run}/again").status == 303  # once the table is mended


def test_a_table_that_is_gone_is_told_with_the_plan(served):
    (served.folder / "brief.csv").write_text("a,y\n" + "1,2\n" * 150)
    run = declared(served.folder, Declaration("brief.csv", response="y", features=("a",), search=True))
    assert served.get(f"/runs/{run}").status == 200
    (served.folder / "brief.csv").write_text("b,y\n" + "1,2\n" * 150)
    assert "there is no column &#39;a&#39;" in served.get(f"/runs/{run}").text
    (served.folder / "brief.csv").unlink()
    for answer in (served.get(f"/runs/{run}"), served.post(f"/runs/{run}/fit")):
        assert "no such table" in answer.text and answer.status == 422
    assert ledger(served.folder).total() == 0.0 and Desk(served.folder).run(run).state == "planned"


def test_a_plan_that_the_account_has_no_room_for_is_not_started(served):
    run = declared(served.folder, Declaration(FAST.table, FAST.response, FAST.features, epsilon=3.5))
    page = served.get(f"/runs/{run}").text
    assert "There is no room for it" in page and f'action="/runs/{run}/fit"' not in page
    assert "would pass the cap" in served.post(f"/runs/{run}/fit").text
    assert ledger(served.folder).total() == 0.0 and Desk(served.folder).run(run).state == "planned"


def test_what_is_unusual_must_be_confirmed(served):
    (served.folder / "few.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 7},{i % 5}\n" for i in range(60)))
    bounds = {"a": (0, 60), "b": (0, 9)}
    run = declared(served.folder, Declaration("few.csv", response="y", features=("a", "b"), bounds=bounds))
    assert "Tick the box" in served.post(f"/runs/{run}/fit").text
    assert Desk(served.folder).run(run).state == "planned" and ledger(served.folder).total() == 0.0


def test_the_desk_asks_for_an_account_before_anything_else(tmp_path, patients):
    (tmp_path / "patients.csv").write_bytes(patients.read_bytes())
    with serving(tmp_path) as (_, client):
        client.enter()
        assert client.get("/declare?table=patients.csv").place == "/account"
        for wrong, words in [
            ({"epsilon": ""}, "fill it in"),
            ({"epsilon": "x"}, "no number"),
            ({"epsilon": "0"}, "above 0"),
        ]:
            assert words in client.post("/account", wrong).text
        assert client.post("/account", {"epsilon": "2", "delta": "1e-7", "number": "private"}).status == 303
        assert "already" in client.post("/account", {"epsilon": "9"}).text
    opened = ledger(tmp_path)
    assert opened.budget == Budget.approximate(2, 1e-7) and opened.relation == "add-remove"


def test_two_desks_on_one_folder_start_one_fit(folder):
    """The lock is the process's own: a second server sees it, too."""
    first, second = Desk(folder), Desk(folder)
    first.open()
    run = first.declare(FAST)
    first.start(run)
    assert second.run(run.id).state == "running"
    second.start(run)
    with pytest.raises(InputError, match="another fit is running"):
        second.start(second.declare(FAST.fit_again()))
    first.bench.close()
    assert second.bench.current() is None
    assert len(ledger(folder).runs()) <= 1
