"""`--person` and `--rows-per-person`: fits of tables with several rows of each person."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from sfumato.model import load_model
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.unit import Unit


@pytest.fixture
def visits(here):
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, (3000, 2))
    who = [f"visitor-{i}" for i in rng.integers(0, 700, 3000)]
    pcsv.write_csv(
        pa.table({"who": who, "age": x[:, 0], "dose": x[:, 1], "los": x[:, 0] - x[:, 1]}), here / "visits.csv"
    )
    return ("fit", "visits.csv", "-y", "los", "--person", "who", "--out", "los")


def test_a_fit_of_persons_says_so_everywhere(sfumato, here, visits):
    code, out, _ = sfumato(*visits, "--rows-per-person", "5")
    said = "replacing any one person with all their rows (at most 5 of them count)"
    assert code == 0 and said in " ".join(out.split())
    model = load_model(here / "los" / "model.json")
    assert model.rows_per_person == 5 and said in model.ledger_.guarantee
    assert said in (here / "los" / "report.html").read_text()
    for path in (here / "los").iterdir():
        assert "visitor-" not in path.read_text()


def test_one_row_counts_unless_more_are_asked_for(sfumato, here, visits):
    assert sfumato(*visits)[0] == 0
    assert {entry.unit for entry in load_model(here / "los" / "model.json").ledger_} == {Unit(1)}


def test_without_ids_a_number_of_rows_is_declared(sfumato, here):
    code, out, _ = sfumato("fit", "patients.csv", "-y", "los", "--features", "age,dose", "--rows-per-person", "2")
    assert code == 0 and "declared, not checked" in " ".join(out.split())


def test_a_dry_run_and_explain_show_what_several_rows_cost(sfumato, visits):
    code, out, _ = sfumato(*visits[:-2], "--rows-per-person", "5", "--dry-run")
    assert code == 0 and "5 x sqrt(2)" in out and "3,000" not in out
    code, out, _ = sfumato("explain", "-n", "3000", "-p", "2", "--rows-per-person", "5")
    assert code == 0 and "5 x sqrt(2)" in out


def test_a_cap_is_for_persons_or_for_records(sfumato, here, visits):
    for name, also in (("records.jsonl", ()), ("persons.jsonl", ("--person",))):
        assert sfumato("ledger", "create", name, "--epsilon", "3", *also)[0] == 0
    code, _, err = sfumato(*visits, "--cap-ledger", "records.jsonl")
    assert code != 0 and "protects any one record, this fit any one person" in " ".join(err.split())
    assert sfumato(*visits, "--cap-ledger", "persons.jsonl")[0] == 0
    assert len(FileLedger(here / "persons.jsonl")) > 0 and len(FileLedger(here / "records.jsonl")) == 0
    assert "of a person" in sfumato("ledger", "show", "persons.jsonl")[1]
    assert json.loads((here / "records.jsonl").read_text().splitlines()[0]).get("protects") is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--person", "whom"), "person: there is no column 'whom'; did you mean 'who'?"),
        (("--rows-per-person", "0"), "rows-per-person"),
        (("--rows-per-person", "20000"), "rows_per_person must be a whole number from 1 to 10000"),
    ],
)
def test_mistakes_are_told_in_one_sentence(sfumato, visits, words, complaint):
    code, _, err = sfumato(*visits, *words)
    assert code != 0 and complaint in " ".join(err.replace("│", " ").split())
