"""The desk has no logic of its own: what it declares is what the command line reads."""

import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from sfumato.cli.app import app
from sfumato.errors import InputError
from sfumato.hints import visible
from sfumato.study import explain_fit, prepare, read_categories, split_names
from sfumato.web.declaration import Declaration
from sfumato.web.desk import Desk

ODD = ["a,b", 'say "x"', "-y", "--out", "x*", "lab[1]", "größe 😀", "a|b", "red\x1b[31m", "$(rm)", "it's"]


def parsed(words: list[str]) -> dict:
    """What the real parser of the command makes of the words."""
    command = get_command(app).commands["fit"]
    assert words[0] == "fit"
    return command.make_context("fit", list(words[1:])).params


@pytest.fixture
def said() -> Declaration:
    return Declaration(
        "patients.csv",
        response="los",
        features=("age", "bmi", "ward"),
        categorical={"ward": ("north", "south")},
        bounds={"age": (0.0, 120.0)},
        epsilon=0.7,
        directions="2",
        picture=False,
    )


def test_the_command_says_what_was_declared(said):
    read = parsed(said.words(Path("runs/x"), Path("account.jsonl")))
    assert read["data"] == "patients.csv" and read["response"] == "los" and read["estimator"] == "sir"
    assert split_names(read["features"]) == ["age", "bmi", "ward"]
    assert read_categories(read["categorical"]) == {"ward": ["north", "south"]}
    assert read["epsilon"] == 0.7 and read["delta"] == 1e-6 and read["directions"] == "2"
    assert read["bounds"] == "runs/x/bounds.toml" and read["cap_ledger"] == Path("account.jsonl")
    assert read["out"] == Path("runs/x/result") and read["picture"] is False


@pytest.mark.parametrize("name", ODD)
def test_odd_names_reach_the_command_unharmed(name):
    said = Declaration(name, response=name, features=(name, "other"), person=name, classes=(name,))
    read = parsed(said.words(Path("runs/x"), Path("a.jsonl")))
    assert read["data"] == read["response"] == read["person"] == name
    assert split_names(read["features"]) == [name, "other"] and split_names(read["classes"]) == [name]
    assert shlex.split(said.command(Path("runs/x"), Path("a.jsonl")))[1:] == said.words(Path("runs/x"), Path("a.jsonl"))


def test_the_explain_fit_the_desk_is_the_explain_fit_the_command(folder, said):
    desk = Desk(folder)
    desk.open()
    run = desk.declare(said)
    study, options = said.study(folder, run.folder)
    assert desk.explain(run).rows() == explain_fit(*prepare(study, options)).rows()
    assert desk.explain(run).n_samples == 3000
    assert desk.explain(run, 50).n_samples == 50


def test_bounds_of_odd_names_are_read_back(tmp_path):
    pq.write_table(pa.table({name: [1.0] for name in ODD} | {"y": [1.0]}), tmp_path / "odd.parquet")
    desk = Desk(tmp_path)
    desk.open()
    bounds = {name: (0.0, float(i + 1)) for i, name in enumerate(ODD)}
    run = desk.declare(Declaration("odd.parquet", response="y", features=tuple(ODD), bounds=bounds))
    study, options = run.said.study(tmp_path, run.folder)
    estimator, _ = prepare(study, options)
    assert estimator.bounds.upper.tolist() == [float(i + 1) for i in range(len(ODD))]


def test_a_declaration_is_named_by_what_it_says(said):
    again = Declaration.read(said.written())
    assert again == said and again.id == said.id
    assert said.fit_again().id != said.id


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"table": 1}'])
def test_a_text_that_is_no_declaration_is_refused(text):
    with pytest.raises(InputError, match="cannot be read"):
        Declaration.read(text)


def test_a_declaration_that_was_altered_is_refused(folder, said):
    desk = Desk(folder)
    desk.open()
    run = desk.declare(said)
    study = run.folder / "study.json"
    study.write_text(study.read_text().replace('"epsilon": 0.7', '"epsilon": 9.0'))
    with pytest.raises(InputError, match="was changed"):
        desk.run(run.id)
    assert desk.runs() == []


def test_nothing_that_does_not_print_is_shown():
    assert visible("a\x1b[31m\u202eb\x00") == "a\\x1b[31m\\u202eb\\x00"
