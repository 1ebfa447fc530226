"""`sfumato fit` writes a report, a model and the directions, or nothing."""

import csv
import json

import numpy as np
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sfumato import Budget
from sfumato.model import load_inputs, load_model
from sfumato.privacy.ledger import FileLedger


def leftovers(folder):
    return [path.name for path in folder.iterdir() if "partial" in path.name]


def directions(path):
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [row["feature"] for row in rows], np.array([float(row["direction_1"]) for row in rows])


def test_a_fit_prints_and_writes_what_it_found(sfumato, here, fit_words):
    code, out, err = sfumato(*fit_words, "--out", "los")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (here / "los").iterdir()) == ["directions.csv", "model.json", "report.html"]
    for words in (
        "age",
        "±",
        "descent step 12",
        "(epsilon = 1, delta = 1e-06)",
        "replacing any one record",
        "los/report.html",
    ):
        assert words in out.replace("\n", " ")
    names, loadings = directions(here / "los" / "directions.csv")
    assert names == ["age", "weight", "dose"]
    np.testing.assert_allclose(np.abs(loadings), [0.894, 0.447, 0.0], atol=0.1)
    model = load_model(here / "los" / "model.json")
    np.testing.assert_array_equal(model.directions_[0], loadings)
    assert model.ledger_.total() == pytest.approx(1.0) and not model.ledger_.rehearsal
    assert "descent step 12" in (here / "los" / "report.html").read_text()
    assert leftovers(here) == []


def test_a_second_run_replaces_the_first_and_says_that_both_were_paid_for(sfumato, here, fit_words):
    sfumato(*fit_words, "--out", "los")
    (here / "los" / "notes.txt").write_text("mine")
    first = (here / "los" / "model.json").read_text()
    code, _, err = sfumato(*fit_words, "--out", "los")
    assert code == 0 and "earlier fit" in err and "still spent" in err
    assert (here / "los" / "model.json").read_text() != first
    assert (here / "los" / "notes.txt").read_text() == "mine"


def test_every_format_gives_the_same_directions_with_the_same_seed(sfumato, here, patients, fit_words):
    table = pcsv.read_csv(patients)
    pq.write_table(table, here / "p.parquet")
    feather.write_feather(table, here / "p.feather")
    for i in range(2):
        pq.write_table(table.slice(2000 * i, 2000), here / f"half-{i}.parquet")
    found = []
    for name in ("patients.csv", "p.parquet", "p.feather", "half-*.parquet"):
        words = (name if word == "patients.csv" else word for word in fit_words)
        code, out, err = sfumato(*words, "--seed", "3", "--out", "same")
        assert code == 0 and "rehearsal" in out and "no privacy" in err
        found.append((here / "same" / "directions.csv").read_bytes())
    assert len(set(found)) == 1


def test_bounds_are_found_privately_if_none_are_given(sfumato, here):
    code, out, _ = sfumato("fit", "patients.csv", "-y", "los", "--features", "age,weight", "--no-picture")
    assert code == 0 and "order of magnitude of each feature" in out and "picture" not in out


def test_categories_are_declared_encoded_and_kept_for_transform(sfumato, here):
    words = ("fit", "patients.csv", "--response", "los", "--categorical", "ward=north|south|west", "--out", "los")
    code, out, _ = sfumato(*words, "--bounds", "bounds.toml")
    assert code == 0 and "ward=west" in out
    inputs = load_inputs(here / "los" / "model.json")
    assert inputs.names == ("age", "weight", "dose", "ward=south", "ward=west") and inputs.response == "los"
    model = load_model(here / "los" / "model.json")
    np.testing.assert_array_equal(model.bounds.upper, [4, 4, 4, 1, 1])
    assert sfumato("transform", "patients.csv", "--model", "los/model.json", "--out", "p.csv")[0] == 0


def test_a_response_of_classes(sfumato, here):
    code, out, _ = sfumato(
        "fit",
        "patients.csv",
        "-y",
        "ward",
        "--features",
        "age,weight",
        "--classes",
        "north,south,west",
        "--directions",
        "1",
    )
    assert code == 0 and "sizes of the classes" in out
    code, out, _ = sfumato("fit", "patients.csv", "-y", "ward", "--features", "age,weight", "--dry-run")
    assert code == 0 and "sizes of the classes" in out and "ranks" not in out


@pytest.mark.parametrize("budget", [("--rho", "0.1"), ("--epsilon", "2", "--delta", "1e-7")])
def test_the_budget_is_what_was_asked_for(budget, sfumato, here, fit_words):
    assert sfumato(*fit_words, *budget, "--directions", "2", "--method", "one-shot", "--out", "los")[0] == 0
    model = load_model(here / "los" / "model.json")
    expected = Budget.zcdp(0.1) if budget[0] == "--rho" else Budget.approximate(2, 1e-7)
    assert model.ledger_.budget == expected and model.directions_.shape == (2, 3) and model.method == "one-shot"


def test_a_dry_run_prints_the_plan_and_writes_nothing(sfumato, here, fit_words):
    before = sorted(here.iterdir())
    code, out, err = sfumato(*fit_words, "--dry-run", "--out", "los")
    assert (code, err) == (0, "") and "descent step 1" in out and "4,000 records of 3 features" in out
    assert sorted(here.iterdir()) == before
    private = sfumato(*fit_words, "--dry-run", "--relation", "add-remove")[1]
    assert "4,000" not in private and "Plan for records of 3 features" in private


def test_missing_values_are_refused_or_dropped_under_add_remove(sfumato, here, fit_words):
    lines = (here / "patients.csv").read_text().splitlines()
    lines[7] = "," + lines[7].partition(",")[2]
    (here / "gaps.csv").write_text("\n".join(lines))
    words = [("gaps.csv" if word == "patients.csv" else word) for word in fit_words]
    code, _, err = sfumato(*words, "--out", "los")
    assert code == 2 and "column 'age' has missing" in err and "--drop-missing" in err
    code, _, err = sfumato(*words, "--drop-missing", "--relation", "replace")
    assert code == 2 and "number of records private" in err
    code, out, _ = sfumato(*words, "--drop-missing", "--out", "los")
    assert code == 0 and "adding or removing any one record" in out.replace("│\n│ ", "")
    assert load_model(here / "los" / "model.json").relation == "add-remove"


def test_a_cap_ledger_is_charged_and_refuses_what_passes_it(sfumato, here, fit_words):
    FileLedger(here / "study.jsonl", Budget.approximate(1.2, 1e-6))
    words = (*fit_words, "--cap-ledger", "study.jsonl")
    code, _, err = sfumato(*words, "--out", "one")
    assert code == 0 and f"{here / 'study.jsonl'}: epsilon = 1 of the cap" in err and "is left" in err
    code, out, err = sfumato(*words, "--out", "two")
    assert code == 3 and "would pass the cap" in err and out == ""
    assert not (here / "two").exists() and leftovers(here) == []
    assert "fit los in patients.csv" in (here / "study.jsonl").read_text()


def test_nothing_but_names_and_released_values_is_written(sfumato, here, fit_words):
    sfumato(*fit_words, "--out", "los")
    cells = {cell for line in (here / "patients.csv").read_text().splitlines()[1:] for cell in line.split(",")}
    cells -= {'"north"', '"south"', '"west"'}
    content = json.dumps(json.loads((here / "los" / "model.json").read_text())).replace(",", " ").split()
    assert not cells & set(content)
    for name in ("report.html", "directions.csv"):
        text = (here / "los" / name).read_text()
        assert not [cell for cell in cells if len(cell) > 8 and cell in text]
