"""Files between devices and analyst: one, or one pair for each wave."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from sfumato.cli.local import FORM, local_app
from sfumato.cli.sheets import HEADER
from sfumato.cli.terminal import CommandGroup
from sfumato.errors import InputError
from sfumato.local.forms import Sheet, answers_from, from_text
from sfumato.local.randomisers import SliceRandomiser

app = typer.Typer(cls=CommandGroup, pretty_exceptions_enable=False)
app.add_typer(local_app, name="local")


def run(*arguments):
    return CliRunner().invoke(app, ["local", *map(str, arguments)])


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8_000, 3))
    y = x[:, 1] + 0.1 * rng.standard_normal(8_000)
    path = tmp_path / "people.csv"
    lines = ["a,b,c,y", *(",".join(f"{v:.6f}" for v in (*row, label)) for row, label in zip(x, y, strict=True))]
    path.write_text("\n".join(lines))
    return path


def test_slices_go_out_and_the_direction_comes_back(people, tmp_path):
    answers, found = tmp_path / "answers.parquet", tmp_path / "found.csv"
    sent = run("randomize", people, "-y", "y", "--edges", "0", "--epsilon", 2, "--out", answers)
    assert sent.exit_code == 0, sent.output
    assert set(pq.read_table(answers).column("y").to_pylist()) == {0, 1}
    fitted = run("fit", answers, "--directions", 1, "--out", found)
    assert fitted.exit_code == 0 and "epsilon = 2 (pure)" in fitted.output
    assert "noise alone would give some, too" in fitted.output
    rows = dict(line.split(",") for line in found.read_text().split()[1:])
    assert abs(float(rows["b"])) > 0.9


def test_answers_are_not_written_under_the_name_of_another_format(people, tmp_path):
    refused = run("randomize", people, "-y", "y", "--edges", "0", "--out", tmp_path / "answers.csv")
    assert refused.exit_code == 2 and "name it answers.parquet" in refused.output
    assert not (tmp_path / "answers.csv").exists()


def test_numbers_go_out_and_the_regression_comes_back(people, tmp_path):
    answers = tmp_path / "answers.parquet"
    assert run("randomize", people, "-y", "y", "--range", "-3,3", "--epsilon", 2, "--out", answers).exit_code == 0
    fitted = run("fit", answers, "--active", 1)
    rows = [line.split() for line in fitted.output.splitlines() if line.strip()]
    assert fitted.exit_code == 0 and ["feature", "coefficient"] in rows
    assert rows[rows.index(["feature", "coefficient"]) + 2][0] == "b"


def test_no_spreadsheet_takes_the_name_of_a_feature_for_a_formula(people, tmp_path):
    answers, found = tmp_path / "answers.parquet", tmp_path / "found.csv"
    people.write_text(people.read_text().replace("a,b,c", "a,=1+1,c"))
    assert run("randomize", people, "-y", "y", "--edges", "0", "--out", answers).exit_code == 0
    assert run("fit", answers, "--directions", 1, "--out", found).exit_code == 0
    assert "'=1+1" in found.read_text()


def test_the_file_holds_no_true_label(people, tmp_path):
    answers = tmp_path / "answers.parquet"
    run("randomize", people, "-y", "y", "--range", "-3,3", "--out", answers)
    sent = pq.read_table(answers)
    true = np.loadtxt(people, delimiter=",", skiprows=1)[:, 3]
    assert len(np.intersect1d(sent.column("y").to_numpy(), true)) == 0
    assert sent.num_columns == 4 and FORM in sent.schema.metadata


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        ((), "one of them"),
        (("--edges", "0", "--range", "0,1"), "one of them"),
        (("--edges", "1,0"), "edges"),
        (("--edges", "x"), "edges"),
        (("--range", "5"), "range"),
        (("--edges", "0", "--epsilon", "-1"), "epsilon"),
    ],
)
def test_a_wrong_form_is_one_line(people, tmp_path, extra, word):
    answers = tmp_path / "answers.parquet"
    failed = run("randomize", people, "-y", "y", *extra, "--out", answers)
    assert failed.exit_code in (2, 3) and word in failed.output and "Traceback" not in failed.output
    assert not answers.exists()


def test_a_missing_label_and_a_missing_column_are_refused(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,y\n1.0,\n2.0,3.0\n")
    assert "missing" in run("randomize", path, "-y", "y", "--edges", "0", "--out", tmp_path / "o.parquet").output
    assert "no column" in run("randomize", path, "-y", "z", "--edges", "0", "--out", tmp_path / "o.parquet").output


def test_true_labels_are_not_taken_for_answers(people, tmp_path):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0.0, 1.0]}), plain)
    refused = run("fit", plain)
    assert refused.exit_code == 2 and "randomise the labels first" in refused.output


@pytest.mark.parametrize("text", [None, "{", "[]", '{"version": 1}', '{"version": 1, "response": "y", "rehearsal": 0}'])
def test_a_broken_header_is_refused(text):
    with pytest.raises(InputError, match="randomise the labels first"):
        from_text(text)


@pytest.mark.parametrize("values", [[0.0, 2.0], [-1.0], [0.5], [np.nan]])
def test_answers_no_device_could_have_sent_are_refused(values):
    with pytest.raises(InputError, match="answers"):
        answers_from(values, SliceRandomiser(1.0, [0.0]), False)


@pytest.fixture
def crowd(tmp_path):
    """People with ids and public features, and a file of their labels in another order."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2_000, 3))
    y, ids = 5_000 + 900 * x[:, 1] + 90 * rng.standard_normal(2_000), rng.permutation(2_000) + 10
    people, labels = tmp_path / "people.parquet", tmp_path / "labels.csv"
    pq.write_table(pa.table({"id": ids, "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}), people)
    rows = [f"{ids[i]},{y[i]:.4f}" for i in rng.permutation(2_000)]
    labels.write_text("\n".join(["id,pay", *rows]))
    return people, labels


def survey(people, labels, folder, *options, waves=3):
    """Every wave: ask, answer; the files of answers."""
    done = []
    for wave in range(waves):
        question, reply = folder / f"wave{wave}.parquet", folder / f"answers{wave}.parquet"
        plan = ("-y", "pay", "--waves", waves, *options) if wave == 0 else ()
        asked = run("ask", people, *done, *plan, "--out", question)
        assert asked.exit_code == 0 and f"wave {wave + 1} of {waves}" in asked.output, asked.output
        answered = run("answer", question, labels, "--out", reply)
        assert answered.exit_code == 0, answered.output
        done.append(reply)
    return done


def test_waves_go_out_and_the_direction_comes_back(crowd, tmp_path):
    people, labels = crowd
    answers = survey(people, labels, tmp_path, "--person", "id", "--epsilon", 3, "--edges", "2000,5000,8000")
    fitted = run("fit", *answers, "--out", tmp_path / "found.csv")
    assert fitted.exit_code == 0 and "epsilon = 3 (pure)" in fitted.output, fitted.output
    rows = dict(line.split(",") for line in (tmp_path / "found.csv").read_text().split()[1:])
    assert float(rows["b"]) > 0.98 and set(rows) == {"a", "b", "c"}
    tables = [pq.read_table(path) for path in answers]
    ids = [each for table in tables for each in table.column("id").to_pylist()]
    assert sorted(ids) == list(range(10, 2_010))  # everybody, once
    assert all(set(table.column("pay").to_pylist()) == {0, 1} for table in tables)
    assert "all waves have been answered" in run("ask", people, *answers, "--out", tmp_path / "w.parquet").output


def test_a_device_answers_for_its_own_person_and_only_in_its_wave(crowd, tmp_path):
    people, labels = crowd
    question = tmp_path / "wave.parquet"
    run("ask", people, "-y", "pay", "--person", "id", "--out", question)
    asked = pq.read_table(question).column("id").to_pylist()
    lines = labels.read_text().split()[1:]
    mine = next(line for line in lines if int(line.split(",")[0]) in asked)
    other = next(line for line in lines if int(line.split(",")[0]) not in asked)
    me, out = tmp_path / "me.csv", tmp_path / "mine.parquet"
    me.write_text(f"id,pay\n{mine}\n")
    assert "1 answers" in run("answer", question, me, "--out", out).output
    assert pq.read_table(out).num_rows == 1
    me.write_text(f"id,pay\n{other}\n")
    assert "nobody here is asked" in run("answer", question, me, "--out", tmp_path / "none.parquet").output
    assert "do not answer" in run("answer", question, labels, "--most", 0.5, "--out", tmp_path / "none.parquet").output
    assert not (tmp_path / "none.parquet").exists()


def test_a_file_that_asks_people_of_another_wave_is_not_answered(crowd, tmp_path):
    """An analyst who asks somebody a second time is refused by that person's own device."""
    people, labels = crowd
    question, forged = tmp_path / "wave.parquet", tmp_path / "forged.parquet"
    run("ask", people, "-y", "pay", "--person", "id", "--out", question)
    table = pq.read_table(question)
    for ids in (list(range(10, 10 + len(table))), [table.column("id")[0].as_py()] * len(table)):
        place = table.column_names.index("id")
        pq.write_table(
            table.set_column(place, "id", pa.array(ids)).replace_schema_metadata(table.schema.metadata), forged
        )
        refused = run("answer", forged, labels, "--out", tmp_path / "a.parquet")
        assert refused.exit_code == 2 and "do not answer" in refused.output


def test_mistakes_with_waves_are_one_line_each(crowd, tmp_path):
    people, labels = crowd
    question, answers, out = tmp_path / "w.parquet", tmp_path / "a.parquet", tmp_path / "o.parquet"
    assert "response must be given" in run("ask", people, "--out", out).output
    assert "waves must be" in run("ask", people, "-y", "pay", "--waves", 1, "--out", out).output
    assert "no column 'name'" in run("ask", people, "-y", "pay", "--person", "name", "--out", out).output
    run("ask", people, "-y", "pay", "--out", question)
    part = tmp_path / "part.csv"
    part.write_text("pay\n1.0\n")
    assert "ask with --person" in run("answer", question, part, "--out", out).output
    assert "check which file is which" in run("fit", question).output
    assert "check which file is which" in run("ask", people, question, "--out", out).output
    other = tmp_path / "other.parquet"
    run("ask", people, "-y", "pay", "--person", "id", "--out", question)
    run("answer", question, labels, "--out", answers, "--seed", 1)
    run("ask", people, "-y", "pay", "--person", "id", "--out", question)
    run("answer", question, labels, "--out", other)
    assert "different surveys" in run("fit", answers, other).output
    assert "in two of these files" in run("fit", answers, answers).output
    assert "leave its options out" in run("ask", people, answers, "--waves", 3, "--out", out).output
    assert "No privacy guarantee" in run("fit", answers).output
    assert not out.exists()


@pytest.mark.parametrize(
    "change", [("wave", 9), ("wave", "x"), ("n_people", 0), ("response", 3), ("survey", {}), ("more", 1)]
)
def test_a_broken_sheet_is_refused(crowd, tmp_path, change):
    question = tmp_path / "w.parquet"
    run("ask", crowd[0], "-y", "pay", "--out", question)
    header = json.loads(pq.read_table(question).schema.metadata[HEADER])
    header["sheet"][change[0]] = change[1]
    with pytest.raises(InputError, match="ask first"):
        Sheet.from_text(json.dumps(header))
