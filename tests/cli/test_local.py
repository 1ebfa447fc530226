"""Two commands, one file between them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from sfumato.cli.local import FORM, local_app
from sfumato.cli.terminal import CommandGroup
from sfumato.errors import InputError
from sfumato.local.forms import answers_from, from_text
from sfumato.local.slices import SliceRandomiser

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
    rows = dict(line.split(",") for line in found.read_text().split()[1:])
    assert abs(float(rows["b"])) > 0.9


def test_numbers_go_out_and_the_regression_comes_back(people, tmp_path):
    answers = tmp_path / "answers.parquet"
    assert run("randomize", people, "-y", "y", "--range", "-3,3", "--epsilon", 2, "--out", answers).exit_code == 0
    fitted = run("fit", answers, "--active", 1)
    assert fitted.exit_code == 0 and "b" in fitted.output.split("coefficient")[1].split()[0]


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
