"""Where a fit puts its results: either nothing was spent, or they are on the disk, with one sentence."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.cli import fit, output
from sfumato.model import load_model
from sfumato.privacy.ledger import FileLedger

NAMES = ["directions.csv", "model.json", "report.html"]


@pytest.fixture
def mounted(tmp_path):
    """Mount a small disk of its own; skipped where that is not allowed."""
    done = []

    def mount(path, options):
        path.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs the right to mount a disk")
        done.append(path)
        return path

    yield mount
    for path in done:
        subprocess.run(["umount", str(path)], check=True, timeout=60)


@pytest.fixture
def study(here):
    return FileLedger(here / "study.jsonl", Budget.approximate(9, 1e-6))


@pytest.fixture
def words(fit_words, study):
    return (*fit_words, "--no-picture", "--cap-ledger", "study.jsonl")


def spent(study):
    return study.refresh().total()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_mount_point_takes_the_results(sfumato, here, words, study, mounted):
    code, _, err = sfumato(*words, "--out", str(mounted(here / "disk", "size=64m")))
    assert code == 0, err
    assert names(here / "disk") == NAMES and spent(study) == pytest.approx(1.0)


@pytest.mark.parametrize("options", ["size=1m", "ro"])
def test_a_full_or_read_only_disk_costs_nothing(options, sfumato, here, words, study, mounted):
    disk = mounted(here / "disk", options)
    for place in (disk, disk / "new"):
        code, _, err = sfumato(*words, "--out", str(place))
        assert code == 2 and err.startswith("error: out: ") and err.count("\n") == 1, err
        assert names(disk) == [] and spent(study) == 0.0


def test_links_to_nowhere_files_and_missing_parents_cost_nothing(sfumato, here, words, study):
    (here / "dangling").symlink_to(here / "nowhere")
    (here / "loop").symlink_to(here / "loop")
    (here / "file").touch()
    for place in ("dangling", "loop", "file", "no/parent"):
        code, _, err = sfumato(*words, "--out", place)
        assert code == 2 and err.startswith("error: out: ") and err.count("\n") == 1, err
    assert spent(study) == 0.0 and not (here / "nowhere").exists()


def test_a_link_to_a_directory_is_followed(sfumato, here, words):
    (here / "there").mkdir()
    (here / "link").symlink_to("there")
    assert sfumato(*words, "--out", "link")[0] == 0
    assert names(here / "there") == NAMES and (here / "link").is_symlink()


def test_without_out_the_results_are_in_a_folder_of_their_own(sfumato, here, words):
    before = set(here.iterdir())
    for _ in range(2):
        code, out, _ = sfumato(*words)
        assert code == 0 and "model.json" in out
    made = sorted(set(here.iterdir()) - before)
    assert len(made) == 2 and all(re.fullmatch(r"sfumato-sir-\d{8}-\d{6}(-2)?", path.name) for path in made)
    assert all(names(path) == NAMES for path in made)
    assert load_model(made[0] / "model.json").ledger_.total() == pytest.approx(1.0)


def test_a_refused_fit_leaves_no_folder(sfumato, here, words, study):
    before = sorted(here.iterdir())
    assert sfumato(*words, "--epsilon", "10")[0] == 3
    assert sfumato(*words, "--bounds", "nowhere.toml")[0] == 2
    assert sorted(here.iterdir()) == before and spent(study) == 0.0


def test_a_result_that_cannot_be_put_in_place_is_kept_and_its_place_told(sfumato, here, words, study, monkeypatch):
    whole = os.replace

    def busy(source, target):
        if Path(source).name == "model.json":
            raise OSError(16, "Device or resource busy", str(source), None, str(target))
        whole(source, target)

    monkeypatch.setattr(output.os, "replace", busy)
    code, _, err = sfumato(*words, "--out", "los")
    (kept,) = (here / "los").glob(".draft.*.partial")
    assert code == 2 and str(kept) in err and "paid for" in err
    assert load_model(kept / "model.json").ledger_.total() == pytest.approx(spent(study)) == pytest.approx(1.0)


def test_a_disk_that_fills_up_during_the_fit_sends_the_results_elsewhere(sfumato, here, words, monkeypatch):
    whole = fit.write_model

    def full(fitted, source, response, folder):
        if "partial" in str(folder):
            raise OSError(28, "No space left on device")
        whole(fitted, source, response, folder)

    monkeypatch.setattr(fit, "write_model", full)
    code, _, err = sfumato(*words, "--out", "los")
    (kept,) = here.glob("sfumato-kept-*")
    assert code == 2 and str(kept) in err and "No space left" in err and err.count("\n") == 1
    assert load_model(kept / "model.json").ledger_.total() == pytest.approx(1.0) and not (here / "los").exists()


def test_ctrl_c_on_a_full_disk_still_says_where_the_results_are(sfumato, here, words, monkeypatch):
    whole = fit.write_model

    def full(fitted, source, response, folder):
        if "partial" in str(folder):
            os.kill(os.getpid(), signal.SIGINT)
            raise OSError(28, "No space left on device")
        whole(fitted, source, response, folder)

    monkeypatch.setattr(fit, "write_model", full)
    code, _, err = sfumato(*words, "--out", "los")
    (kept,) = here.glob("sfumato-kept-*")
    assert code == 2 and str(kept) in err
    assert load_model(kept / "model.json").ledger_.total() == pytest.approx(1.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_results_are_written_waits_for_them(number, start, here, words, study):
    """The signal comes from inside the writing of the model, in a process of its own."""
    few = Path(__file__).parents[1] / "few_stand_ins" / "sitecustomize.py"  # only one of that name is found
    (here / "sitecustomize.py").write_text(
        few.read_text() + "import os, sys\n"
        "if 'fit' in sys.argv:\n"
        "    import sfumato.cli.fit as fit\n"
        "    whole = fit.write_model\n"
        f"    fit.write_model = lambda *given: (os.kill(os.getpid(), {int(number)}), whole(*given))\n"
    )
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    with start(*words, "--out", "los", env={"PYTHONPATH": path}) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert b"the model was paid for and is los/model.json" in err and b"Traceback" not in err
    assert names(here / "los") == ["directions.csv", "model.json"]
    assert load_model(here / "los" / "model.json").ledger_.total() == pytest.approx(spent(study))


def test_an_interrupted_fit_says_what_it_cost(sfumato, here, fit_words, words, study, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.privacy.curator.mechanisms.gaussian", interrupt)
    code, _, err = sfumato(*words, "--out", "los")
    assert code == 130 and "1 of " in err and "releases were made and stay in" in err
    assert str(here / "study.jsonl") in err
    code, _, err = sfumato(*fit_words, "--out", "los")
    assert code == 130 and "nothing was spent" in err
    assert not (here / "los").exists()


def test_every_command_names_the_account_and_what_is_left(sfumato, here, words, study):
    where = str(here / "study.jsonl")
    for command in (
        (*words, "--out", "los"),
        ("ledger", "show", "study.jsonl"),
        ("ledger", "verify", "study.jsonl"),
        ("ledger", "remaining", "study.jsonl"),
    ):
        code, out, err = sfumato(*command)
        assert code == 0 and where in out + err and "is left" in out + err, out + err


def test_verify_takes_models_and_reports(sfumato, here, words, study):
    before = (here / "study.jsonl").read_bytes()
    assert sfumato(*words, "--out", "los")[0] == 0
    check = ("ledger", "verify", "study.jsonl", "--model", "los/model.json", "--report", "los/report.html")
    code, out, _ = sfumato(*check)
    assert code == 0 and "2 noted head(s)" in out
    (here / "study.jsonl").write_bytes(before)
    assert sfumato("ledger", "verify", "study.jsonl")[0] == 0
    for options in (check[3:5], check[5:]):
        code, _, err = sfumato(*check[:3], *options)
        assert code == 3 and "cut or rewritten" in err
    assert "notes no head" in sfumato(*check[:3], "--report", "bounds.toml")[2]


def test_a_repair_books_the_releases_of_a_lost_model(sfumato, here, words, study):
    before = (here / "study.jsonl").read_bytes()
    assert sfumato(*words, "--out", "los")[0] == 0
    paid = study.refresh().rho
    (here / "study.jsonl").write_bytes(before + b'{"at":"cut')
    repair = ("ledger", "repair", "study.jsonl", "--reason", "cut")
    assert sfumato(*repair)[0] == 3
    assert "leave it out" in sfumato(*repair, "--nothing-lost", "--lost-rho", "1")[2]
    code, out, _ = sfumato(*repair, "--lost-model", "los/model.json")
    assert code == 0 and str(here / "study.jsonl") in out
    assert FileLedger(here / "study.jsonl").rho == pytest.approx(paid)
