"""Every mistake gives one helpful sentence, a documented exit code, and no value of a record."""

import pytest
from tests.cli.conftest import FIT

from sfumato.cli import fit as fit_module

SECRET = "77.125"

MISTAKES = {
    "response": (("fit", "patients.csv", "-y", "loss"), "did you mean 'los'?"),
    "features": (("fit", "patients.csv", "-y", "los", "--features", "age,wieght"), "did you mean 'weight'?"),
    "file": (("fit", "patient.csv", "-y", "los"), "did you mean 'patients.csv'?"),
    "no response": (("fit", "patients.csv"), "--response"),
    "option": (("fit", "patients.csv", "-y", "los", "--epsilonn", "1"), "--epsilon"),
    "command": (("fti", "patients.csv"), "Did you mean 'fit'?"),
    "negative budget": (("fit", "patients.csv", "-y", "los", "--epsilon", "-1"), "epsilon must be a positive number"),
    "delta": (("fit", "patients.csv", "-y", "los", "--delta", "2"), "delta must be a positive number below 1"),
    "two budgets": (("fit", "patients.csv", "-y", "los", "--rho", "1", "--epsilon", "1"), "not both"),
    "no number": (("fit", "patients.csv", "-y", "los", "--epsilon", "one"), "--epsilon"),
    "text column": (("fit", "patients.csv", "-y", "los"), "column 'ward' is not numeric; declare its categories"),
    "categories": (("fit", "patients.csv", "-y", "los", "--categorical", "ward"), "as column=a|b|c"),
    "categories twice": (
        ("fit", "patients.csv", "-y", "los", "--categorical", "ward=a|b", "--categorical", "ward=a|b"),
        "declared twice",
    ),
    "category column": (("fit", "patients.csv", "-y", "los", "--categorical", "wards=a|b"), "did you mean 'ward'?"),
    "directions": (("fit", "patients.csv", "-y", "los", "--features", "age", "--directions", "2"), "at most 1"),
    "directions word": (("fit", "patients.csv", "-y", "los", "--directions", "all"), "neither 'auto' nor"),
    "method": (("fit", "patients.csv", "-y", "los", "--features", "age", "--method", "magic"), "'descent'"),
    "relation": (("fit", "patients.csv", "-y", "los", "--features", "age", "--relation", "swap"), "'add-remove'"),
    "seed": (("fit", "patients.csv", "-y", "los", "--seed", "-1"), "--seed"),
    "no bounds file": (("fit", "patients.csv", "-y", "los", "--features", "age", "--bounds", "b.toml"), "bounds init"),
    "no directory": (("fit", "patients.csv", "-y", "los", "--out", "no/where"), "does not exist; create it"),
    "file as directory": (("fit", "patients.csv", "-y", "los", "--out", "bounds.toml"), "is a file; name a directory"),
    "no ledger": (
        ("fit", "patients.csv", "-y", "los", "--features", "age", "--cap-ledger", "s.jsonl"),
        "/s.jsonl'; check the name",
    ),
    "no model": (("transform", "patients.csv", "--model", "m.json", "--out", "p.csv"), "m.json cannot be read"),
    "no header": (("bounds", "init", "headless.csv", "--out", "b.toml"), "must name the columns"),
    "ragged": (("fit", "ragged.csv", "-y", "los"), "more or fewer cells"),
    "words among numbers": (("fit", "mixed.csv", "-y", "los", "--features", "age"), "column 'age' is not numeric"),
    "missing": (("fit", "gap.csv", "-y", "los"), "--drop-missing"),
    "spreadsheet": (("fit", "table.xlsx", "-y", "los"), "not readable as an Excel sheet"),
    "directory": (("fit", ".", "-y", "los"), "is a directory; give a file, or a pattern"),
    "empty file": (("fit", "empty.csv", "-y", "los"), "is empty; it needs a line of column names"),
    "no model could be written": ((*FIT, "--epsilon", "1e200"), "epsilon: no model file can hold this value"),
    "tiny delta": ((*FIT, "--delta", "1e-320"), "delta must not be below 1e-300"),
    "thousands of digits": ((*FIT, "--directions", "9" * 5000), "neither 'auto' nor a whole number"),
    "too many digits": (
        ("fit", "patients.csv", "--estimator", "sparse-pca", "--features", "age", "--max-features", "9" * 30),
        "neither 'auto' nor a whole number",
    ),
    "sites by the response": (
        ("federated", "simulate", "patients.csv", "--by", "los", "-y", "los"),
        "by: 'los' is the response",
    ),
    "sites by a number": (
        ("federated", "simulate", "plain.csv", "--by", "age", "-y", "los"),
        "by: column 'age' would make more than 1,000 sites",
    ),
    "no place for a report": (
        ("federated", "simulate", "plain.csv", "--by", "dose", "-y", "los", "--report", "no/r.html"),
        "does not exist; create it first",
    ),
    "desk for everybody": (("serve", ".", "--host", "8.8.8.8"), "can be reached from other machines"),
}


@pytest.fixture
def tables(here):
    (here / "headless.csv").write_text(f"{SECRET},1\n2,3\n")
    (here / "ragged.csv").write_text(f"age,los\n1,2\n1,2,{SECRET}\n")
    (here / "mixed.csv").write_text(f"age,los\n1,2\n{SECRET}x,2\n")
    (here / "gap.csv").write_text(f"age,los\n1,2\n,{SECRET}\n")
    (here / "table.xlsx").write_bytes(b"PK")
    (here / "empty.csv").write_bytes(b"")
    (here / "plain.csv").write_text("age,dose,los\n" + "".join(f"{i},{i % 7},{i % 5}\n" for i in range(1_200)))
    return here


def one_sentence(err: str) -> str:
    assert err.startswith("error: ") and err.count("\n") == 1 and err.rstrip().endswith((".", "?", "'", ")"))
    assert "Traceback" not in err and SECRET not in err
    return err


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_one_helpful_sentence_and_leaves_no_trace(name, sfumato, tables):
    words, remedy = MISTAKES[name]
    before = sorted(tables.iterdir())
    code, out, err = sfumato(*words)
    assert code == 2 and out == ""
    assert remedy in one_sentence(err)
    assert sorted(tables.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("[bounds]\nage = [0, 1]\nwieght = [0, 1]\n", "did you mean 'weight'?"),
        ("[bounds]\nage = []\nweight = [0, 1]\ndose = [0, 1]\n", "'age' is not filled in yet"),
        ("[bounds]\nage = [1, 0]\nweight = [0, 1]\ndose = [0, 1]\n", "'age' has a lower bound that is not below"),
        ("[bounds]\nage = 5\nweight = [0, 1]\ndose = [0, 1]\n", "'age' must be two numbers"),
        ('[bounds]\nage = ["a", "b"]\nweight = [0, 1]\ndose = [0, 1]\n', "'age' must be two numbers"),
        ("[bounds]\nage = [0, inf]\nweight = [0, 1]\ndose = [0, 1]\n", "finite"),
        ("[bounds\n", "not valid TOML"),
        ("age = [0, 1]\n", "no [bounds] section"),
    ],
)
def test_mistakes_in_bounds_are_named(text, remedy, sfumato, here, fit_words):
    (here / "bounds.toml").write_text(text)
    code, _, err = sfumato(*fit_words)
    assert code == 2 and remedy in one_sentence(err)


def test_an_unexpected_error_is_told_by_its_place_not_its_text(sfumato, here, fit_words, monkeypatch):
    def fail(*_):
        raise RuntimeError(f"the record is {SECRET}")

    monkeypatch.setattr(fit_module, "write_report", fail)
    code, _, err = sfumato(*fit_words, "--out", "los")
    assert code == 1 and "unexpected RuntimeError" in one_sentence(err)
    assert sorted(path.name for path in (here / "los").iterdir()) == ["directions.csv", "model.json"]  # paid for


def test_markup_in_names_is_shown_as_it_is(sfumato, here):
    code, _, err = sfumato("fit", "patients.csv", "-y", "[red]x[/]")
    assert code == 2 and "'[red]x[/]'" in one_sentence(err)
