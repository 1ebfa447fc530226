"""Every command, found in the program itself: one success, one mistake, one interruption at the worst moment."""

import os
import re
import shlex
import shutil

import pytest
import typer
from typer.testing import CliRunner

from sfumato import Budget
from sfumato.cli import output
from sfumato.cli.app import app
from sfumato.privacy.ledger import FileLedger, disk

BOUNDS = '[bounds]\n"age" = [-4, 4]\n"weight" = [-4, 4]\n"dose" = [-4, 4]\n'
UNTIL_STOPPED = {"federated site", "federated server", "serve"}  # servers: see tests/federated and tests/web
FIT = "fit patients.csv -y los --features age,weight,dose --bounds bounds.toml --no-picture"
SUCCESSES = {
    "demo": "demo --out demo.html",
    "fit": f"{FIT} --out new",
    "explain": "explain --n 1000 --p 3",
    "transform": "transform patients.csv --model los/model.json --out p.csv",
    "report": "report los/model.json --out r.html",
    "compare": "compare los/model.json los/model.json",
    "reproduce": "reproduce --list",
    "datasets list": "datasets list",
    "datasets export": "datasets export wine w.csv",
    "bounds init": "bounds init patients.csv --out b.toml",
    "ledger create": "ledger create new.jsonl --epsilon 2",
    "ledger show": "ledger show study.jsonl --releases",
    "ledger verify": "ledger verify study.jsonl",
    "ledger remaining": "ledger remaining study.jsonl",
    "ledger close": "ledger close study.jsonl {run}",
    "ledger repair": "ledger repair torn.jsonl --reason 'the disk was full' --nothing-lost",
    "ledger merge": "ledger merge study.jsonl --out whole.jsonl --epsilon 4",
    "audit releases": "audit releases --only lengths --runs 100",
    "audit controls": "audit controls --runs 3000",
    "audit replay": "audit replay --only 'PrivatePCA one-shot, replace, array' --pairs 1",
    "audit trace": "audit trace numbers.csv -y los --splits 1 --out t.svg",
    "local randomize": "local randomize numbers.csv -y los --edges 0 --out a.parquet",
    "local ask": "local ask numbers.csv -y los --waves 2 --edges 0,5,20 --out w.parquet",
    "local answer": "local answer wave.parquet numbers.csv --out a.parquet",
    "local fit": "local fit answers.parquet --directions 1 --out d.csv",
    "federated simulate": "federated simulate numbers.csv --by site -y los --directions 1 --report f.html",
    "federated status": "federated status .",
}
SLOW = {"audit controls"}  # ten seconds, and run by tests/audit
MISTAKES = {
    "demo": ("demo --out .", "is a directory"),
    "fit": ("fit patients.csv -y loss", "did you mean 'los'?"),
    "explain": ("explain --n 0 --p 3", "--n"),
    "transform": ("transform patients.csv --model los/modle.json --out p.csv", "cannot be read"),
    "report": ("report los/directions.csv", "model"),
    "compare": ("compare los/model.json los/directions.csv", "model"),
    "reproduce": ("reproduce xia-tabel-1", "xia-table-1"),
    "datasets list": ("datasets lst", "list"),
    "datasets export": ("datasets export wines w.csv", "'wine'"),
    "bounds init": ("bounds init patient.csv --out b.toml", "did you mean 'patients.csv'?"),
    "ledger create": ("ledger create study.jsonl --epsilon 2", "exists already"),
    "ledger show": ("ledger show studdy.jsonl", "no file"),
    "ledger verify": ("ledger verify torn.jsonl", "damaged"),
    "ledger remaining": ("ledger remaining studdy.jsonl", "no file"),
    "ledger close": ("ledger close study.jsonl nobody", "no run"),
    "ledger repair": ("ledger repair study.jsonl --reason x", "nothing to repair"),
    "ledger merge": ("ledger merge study.jsonl --out whole.jsonl", "--epsilon 3"),
    "audit releases": ("audit releases --only nothing --runs 100", "leave it out"),
    "audit controls": ("audit controls --runs 5", "--runs"),
    "audit replay": ("audit replay --only nothing", "leave it out"),
    "audit trace": ("audit trace numbers.csv -y lost", "did you mean 'los'?"),
    "local randomize": ("local randomize numbers.csv -y los --out a.parquet", "one of them"),
    "local ask": ("local ask numbers.csv --out w.parquet", "response must be given"),
    "local answer": ("local answer numbers.csv numbers.csv --out a.parquet", "ask first"),
    "local fit": ("local fit numbers.csv", "form"),
    "federated simulate": ("federated simulate numbers.csv --by sit -y los", "did you mean 'site'?"),
    "federated status": ("federated status nowhere", "name the folder of a coordinator"),
}
WRITERS = [name for name, words in SUCCESSES.items() if "--out" in words or name in ("datasets export",)]
LEDGERS = ["ledger create", "ledger merge"]


def commands(group, path=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        elif not command.hidden:
            yield path + name


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, patients):
    """A fitted model, a ledger with a run, a torn one, numbers only, and answers."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "patients.csv").write_bytes(patients.read_bytes())
    (folder / "bounds.toml").write_text(BOUNDS)
    rows = [line.split(",") for line in patients.read_text().splitlines()[:1500]]
    sites = ["site", *(str(i % 3) for i in range(len(rows) - 1))]
    lines = [",".join([*row[:3], row[4], site]) for row, site in zip(rows, sites, strict=True)]
    (folder / "numbers.csv").write_text("\n".join(lines) + "\n")
    FileLedger(folder / "study.jsonl", Budget.approximate(3, 1e-6))
    randomize = "local randomize numbers.csv -y los --edges 0 --out answers.parquet"
    ask = "local ask numbers.csv -y los --waves 2 --edges 0,5,20 --out wave.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in (f"{FIT} --out los --cap-ledger study.jsonl", randomize, ask):
            assert CliRunner().invoke(app, shlex.split(words)).exit_code == 0
    (folder / "torn.jsonl").write_bytes((folder / "study.jsonl").read_bytes()[:-20])
    return folder


@pytest.fixture
def here(prepared, tmp_path, monkeypatch):
    """A copy of it, to work in; commands run here."""
    folder = tmp_path / "study"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


def words_of(text: str, here) -> list[str]:
    """The words of a command; {run} is the run in the ledger, as `ledger show` names it."""
    run = re.search(r'"run":"(\w+)"', (here / "study.jsonl").read_text().replace(" ", ""))[1]
    return shlex.split(text.replace("{run}", run))


def test_every_command_is_in_the_tables():
    names = set(commands(typer.main.get_command(app)))
    assert names - UNTIL_STOPPED == set(SUCCESSES) == set(MISTAKES)


@pytest.mark.parametrize("name", [name for name in SUCCESSES if name not in SLOW])
def test_it_does_what_it_says(name, sfumato, here):
    code, out, err = sfumato(*words_of(SUCCESSES[name], here))
    assert code == 0 and out.strip() and "error" not in err, err


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_one_sentence_and_changes_nothing(name, sfumato, here):
    words, remedy = MISTAKES[name]
    before = sorted(os.listdir(here))
    code, _, err = sfumato(*words_of(words, here))
    assert code in (2, 3) and remedy in err, err
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    assert sorted(os.listdir(here)) == before


@pytest.mark.parametrize("name", WRITERS)
def test_an_interruption_just_before_the_end_leaves_nothing_half_written(name, sfumato, here, monkeypatch):
    """All is written beside its place, and Ctrl-C comes at the moment of putting it there."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = sorted(os.listdir(here))
    for function in ("replace", "rename"):
        monkeypatch.setattr(output.os, function, interrupt)
    if name in LEDGERS:
        monkeypatch.setattr(disk, "create", interrupt)
    code, _, err = sfumato(*words_of(SUCCESSES[name], here))
    assert code == 130 and err.splitlines()[-1] == "error: interrupted; no half-written file was left."
    monkeypatch.undo()
    assert sorted(os.listdir(here)) == before


def test_a_fit_interrupted_while_it_is_put_in_place_is_in_the_ledger_all_the_same(sfumato, here, monkeypatch):
    spent = FileLedger(here / "study.jsonl").total()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(output.Draft, "_publish", interrupt)
    code, _, err = sfumato(*FIT.split(), "--cap-ledger", "study.jsonl", "--out", "never")
    monkeypatch.undo()
    ledger = FileLedger(here / "study.jsonl")
    assert "all hashes agree" in ledger.verify() and ledger.total() > spent + 0.2
    (kept,) = (here / "never").iterdir()
    assert code == 130 and str(kept) in err and (kept / "model.json").exists()  # what was paid for is never deleted
