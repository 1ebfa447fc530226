"""Every estimator of the family at the command line: what it promises, its mistakes, its interruption."""

import csv
import os
import re
from functools import cache

import numpy as np
import pyarrow.csv as pcsv
import pytest
from tests.cli.conftest import BOUNDS
from typer.testing import CliRunner

from sfumato import Budget
from sfumato.cli import output, terminal
from sfumato.cli.app import app
from sfumato.methods import FAMILY as OURS
from sfumato.methods import added, load
from sfumato.model import load_inputs, load_model
from sfumato.privacy.ledger import FileLedger

NUMBERS = ("--features", "age,weight,dose", "--bounds", "bounds.toml")
WORDS = {
    "sir": ("-y", "los", *NUMBERS),
    "sparse-sir": ("-y", "los", "--max-features", "2", "--no-picture", *NUMBERS),
    "multi-sir": ("--second", "los,dose", "--features", "age,weight", "--directions", "1"),
    "censored-sir": ("--second", "los,dose", "--features", "age,weight", "--directions", "1"),
    "save": ("-y", "los", "--slices", "4", "--directions", "1", *NUMBERS),
    "dr": ("-y", "los", "--directions", "1", *NUMBERS),
    "phd": ("-y", "los", "--directions", "1", *NUMBERS),
    "pca": ("--features", "age,[wd]*", "--bounds", "bounds.toml", "--categorical", "ward=north|south|west"),
    "sparse-pca": ("--max-features", "2", *NUMBERS),
    "lda": ("-y", "ward", "--classes", "north,south,west", "--directions", "2", *NUMBERS),
    "cca": ("--second", "los,dose", "--features", "age,weight", "--directions", "1"),
    "dp-ini": ("-y", "los", "--directions", "1", *NUMBERS),
    "dp-sir": ("-y", "los", "--directions", "1", *NUMBERS),
    "dp-sini": ("-y", "los", "--directions", "1", "--max-features", "2", *NUMBERS),
    "dp-ssir": ("-y", "los", "--directions", "1", "--max-features", "2", *NUMBERS),
    "dp-spca": ("--max-features", "2", *NUMBERS),
    "rayleigh-flow-sir": ("-y", "los", *NUMBERS),
    "rayleigh-flow-pca": NUMBERS,
    "rayleigh-flow-lda": ("-y", "ward", "--classes", "north,south,west", *NUMBERS),
    "rayleigh-flow-cca": ("--second", "los,dose", "--features", "age,weight"),
    "truncated-rayleigh-flow-sir": ("-y", "los", "--max-features", "1", *NUMBERS),
    "truncated-rayleigh-flow-pca": ("--max-features", "1", *NUMBERS),
}
FAMILY = {**OURS, **added()}
FILES = ["directions.csv", "model.json", "report.html"]


def words(name):
    return ("fit", "patients.csv", "--estimator", name, *WORDS[name])


def interrupt(*_):
    raise KeyboardInterrupt


def test_every_estimator_is_tried():
    assert set(WORDS) == set(FAMILY)


@pytest.fixture(scope="module")
def made(tmp_path_factory, patients, seed_noise):
    """The folder in which an estimator was fitted, and what the command said; fitted when it is first asked for."""

    @cache
    def fit(name):
        folder = tmp_path_factory.mktemp(name)
        (folder / "patients.csv").symlink_to(patients)
        (folder / "bounds.toml").write_text(BOUNDS)
        seed_noise(f"fit of {name} at the command line")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", "100")
            return folder, CliRunner().invoke(app, [*words(name), "--out", "new"])

    return fit


@pytest.mark.parametrize("name", FAMILY)
def test_a_fit_leaves_a_report_a_model_and_directions_that_agree(name, made, sfumato, here, patients):
    folder, done = made(name)
    new = folder / "new"
    assert (done.exit_code, done.stderr) == (0, "") and "new/report.html" in done.stdout
    assert "(epsilon = 1, delta = 1e-06)" in re.sub(r"[│\s]+", " ", done.stdout)  # a narrow table breaks the line
    assert sorted(os.listdir(new)) == FILES
    model = load_model(new / "model.json")
    assert type(model) is load(FAMILY[name]) and model.ledger_.total() <= 1.0 + 1e-9
    assert sfumato("report", str(new / "model.json"), "--out", "again.html")[0] == 0
    assert (here / "again.html").read_bytes() == (new / "report.html").read_bytes()
    assert sfumato("transform", "patients.csv", "--model", str(new / "model.json"), "--out", "p.csv")[0] == 0
    written = pcsv.read_csv(here / "p.csv")
    found = np.column_stack([written[column] for column in written.column_names if "direction" in column])
    inputs, table = load_inputs(new / "model.json"), pcsv.read_csv(patients)
    if name != "pca":  # it has a column of categories, encoded on the way
        sides = [table.select(side.names) for side in (inputs, inputs.second) if side][: 1 + name.endswith("cca")]
        expected = model.transform(*sides)
        np.testing.assert_array_equal(found, expected if len(sides) == 1 else np.hstack(expected))
    assert ("class" in written.column_names) == name.endswith("lda")
    assert not [path for path in (*os.listdir(folder), *os.listdir(here)) if "partial" in path]


@pytest.mark.parametrize("name", FAMILY)
def test_no_number_of_the_table_is_written(name, made, patients):
    cells = {cell for line in patients.read_text().splitlines()[1:] for cell in line.split(",") if len(cell) > 8}
    for file in FILES:
        assert not cells & set(re.findall(r"[-+.\de]+", (made(name)[0] / "new" / file).read_text()))


def lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_directions_are_named_for_what_they_are(sfumato, here):
    for name in ("sparse-pca", "cca"):
        assert sfumato(*words(name), "--out", name)[0] == 0
    sparse = load_model(here / "sparse-pca" / "model.json")
    kept = lines(here / "sparse-pca" / "directions.csv")
    assert [row["feature"] for row in kept] == [sparse.feature_names_in_[j] for j in sparse.support_]
    pair = load_model(here / "cca" / "model.json")
    rows = lines(here / "cca" / "directions.csv")
    assert [(row["set"], row["feature"]) for row in rows] == [
        ("first", "age"), ("first", "weight"), ("second", "los"), ("second", "dose"),
    ]  # fmt: skip
    weights = np.concatenate([pair.x_weights_[0], pair.y_weights_[0]])
    np.testing.assert_array_equal([float(row["weight_1"]) for row in rows], weights)
    assert "→ los" in (here / "cca" / "report.html").read_text()


@pytest.mark.parametrize("name", FAMILY)
def test_a_dry_run_prints_the_plan_of_the_fit_and_spends_nothing(name, sfumato, here):
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    before = (here / "study.jsonl").read_bytes()
    code, out, err = sfumato(*words(name), "--dry-run", "--cap-ledger", "study.jsonl", "--out", "never")
    assert (code, err) == (0, "") and "4,000 records" in out and "nothing was spent" in out
    assert (here / "study.jsonl").read_bytes() == before and not (here / "never").exists()


@pytest.mark.parametrize("name", OURS)
def test_ctrl_c_in_the_middle_leaves_nothing_half_written_and_a_truthful_ledger(name, sfumato, here, monkeypatch):
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    before, begun = sorted(os.listdir(here)), []

    def third(bar, purpose):
        begun.append(purpose)
        if len(begun) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(terminal.Bar, "started", third)
    code, out, err = sfumato(*words(name), "--cap-ledger", "study.jsonl", "--out", "never")
    assert (code, out) == (130, "") and "no half-written file" in err
    assert sorted(os.listdir(here)) == before
    ledger = FileLedger(here / "study.jsonl")
    assert "all hashes agree" in ledger.verify()
    assert [entry.purpose for entry in ledger.entries][:2] == begun[:2] and len(ledger.entries) <= 3
    assert 0 < ledger.total() < 1.0


@pytest.mark.parametrize("name", ["pca", "lda", "cca"])
def test_a_second_ctrl_c_at_the_end_loses_neither_the_model_nor_the_account(name, sfumato, here, monkeypatch):
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    monkeypatch.setattr(output.Draft, "_publish", interrupt)
    code, _, err = sfumato(*words(name), "--cap-ledger", "study.jsonl", "--out", "never")
    monkeypatch.undo()
    (draft,) = (here / "never").iterdir()
    assert code == 130 and str(draft) in err and (draft / "model.json").exists() and "no result" not in err
    text = (here / "study.jsonl").read_text()
    assert FileLedger(here / "study.jsonl").total() == pytest.approx(1.0, abs=1e-6) and f"by {name}" in text
    assert sorted(os.listdir(here)) == ["bounds.toml", "never", "patients.csv", "study.jsonl"]


@pytest.mark.parametrize("name", ["pca", "cca"])
def test_missing_values_are_refused_or_dropped(name, sfumato, here):
    rows = (here / "patients.csv").read_text().splitlines()
    (here / "gaps.csv").write_text("\n".join([*rows[:400], ",1,1,west,1", *rows[400:800], "1,1,1,west,"]))
    given = ["gaps.csv" if word == "patients.csv" else word for word in words(name)]
    code, _, err = sfumato(*given, "--out", "new")
    assert code == 2 and "has missing or infinite values" in err and not (here / "new").exists()
    assert sfumato(*given, "--drop-missing", "--out", "new")[0] == 0
    assert load_model(here / "new" / "model.json").relation == "add-remove"


def test_both_sets_of_a_canonical_pair_may_have_bounds_and_categories(sfumato, here):
    (here / "both.toml").write_text("[bounds]\nage = [-4, 4]\nweight = [-4, 4]\nlos = [-5, 5]\n")
    given = ("--second", "los,ward", "--categorical", "ward=north|south|west", "--bounds", "both.toml")
    code, out, _ = sfumato("fit", "patients.csv", "--estimator", "cca", "--features", "age,weight", *given, "-o", "new")
    model, second = load_model(here / "new" / "model.json"), load_inputs(here / "new" / "model.json").second
    assert code == 0 and "→ ward=west" in out and second.names == ("los", "ward=south", "ward=west")
    np.testing.assert_array_equal(model.y_bounds.upper, [5, 1, 1])
    assert sfumato("transform", "patients.csv", "--model", "new/model.json", "--out", "p.csv")[0] == 0
    assert pcsv.read_csv(here / "p.csv").column_names[0] == "first_direction_1"


@pytest.mark.parametrize("name", OURS)
def test_explain_prints_the_plan_of_each(name, sfumato):
    asked = (
        "explain",
        "--estimator",
        name,
        "--n",
        "5000",
        "--p",
        "8",
        *(("--q", "2") if "q" in load(OURS[name]).about.options else ()),
    )
    found = [sfumato(*asked, *given) for given in ((), ("--bounds",))]
    assert all(code == 0 and "5,000 records of 8" in out and "together" in out for code, out, _ in found)
    told = ["order of magnitude of each" in out for _, out, _ in found]
    assert told == [name != "sparse-sir", False]


@pytest.mark.parametrize("name", added())
def test_explain_prints_the_plan_of_the_papers_estimators(name, sfumato):
    asked = ("explain", "--estimator", name, "--n", "5000", "--p", "8", "--bounds")
    code, out, _ = sfumato(*asked, *(("--q", "2") if name.endswith("cca") else ()))
    assert code == 0 and "5,000 records of 8" in out and "expected loss" not in out


MISTAKES = {
    "sir -y los --method dp-sir": "method: 'dp-sir' is an estimator of its own now; use --estimator dp-sir.",
    "lda -y ward --method rayleigh-flow": "use --estimator rayleigh-flow-lda",
    "pca -y los": "it explains no column: leave it out, and choose columns with --features",
    "sparse-pca -y los": "leave it out, and choose columns with --features",
    "cca -y los": "name the second with --second",
    "multi-sir -y los": "name the second with --second",
    "censored-sir --second los --features age": "y must have two columns, the time and whether",
    "multi-sir": "second: multi-sir needs --second",
    "cca": "second: cca needs --second",
    "lda": "response: lda needs --response",
    "save": "response: save needs --response",
    "pac": "did you mean 'pca'?",
    "PrivateLDA": "did you mean 'lda'?",
    "svm": "choose among sir, sparse-sir",
    "pca --picture": "picture: pca takes no --picture; leave it out (it is for sir, sparse-sir)",
    "lda -y ward --no-picture": "lda takes no --picture",
    "save -y los --method descent": "save takes no --method",
    "sir -y los --max-features 3": "sir takes no --max-features; leave it out (it is for sparse-sir, sparse-pca)",
    "pca --slices 4": "pca takes no --slices; leave it out (it is for save, dr)",
    "cca --second los --classes a,b": "cca takes no --classes",
    "sir -y los --second age": "sir takes no --second; leave it out (it is for multi-sir, censored-sir, cca)",
    "cca --second lso": "second: there is no column 'lso'; did you mean 'los'?",
    "cca --second lab_*": "second: no column matches 'lab_*'",
    "cca --second age,los --features age": "second: 'age' is among the features of the first set too",
    "cca --second los --features age,weight --directions 2": "at most 1",
    "pca --features age,wieght": "did you mean 'weight'?",
    "pca --features age,dose --directions auto": "say how many components you need",
    "pca --features age --method descent": "'refined'",
    "sparse-sir -y los --max-features many": "max-features: 'many' is neither 'auto' nor a whole number",
    "save -y los --features age --slices 1": "from 2 to 48",
    "lda -y los --features age": "classes: column 'los' holds numbers; list its classes",
    "lda -y los --features age --dry-run": "classes: column 'los' holds numbers; list its classes",
    "lda -y ward --features age --classes a,b --bounds bounds.tml": "bounds.tml cannot be read",
}


@pytest.mark.parametrize("given", MISTAKES)
def test_a_mistake_gives_one_sentence_and_costs_nothing(given, sfumato, here):
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    before = sorted(os.listdir(here)), (here / "study.jsonl").read_bytes()
    code, out, err = sfumato(
        "fit", "patients.csv", "--cap-ledger", "study.jsonl", "--out", "new", "--estimator", *given.split()
    )
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert MISTAKES[given] in err, err
    assert (sorted(os.listdir(here)), (here / "study.jsonl").read_bytes()) == before
