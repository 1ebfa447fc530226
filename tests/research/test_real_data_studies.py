"""Studies of data that are not shipped: they run on any table of the right shape, and say what they need."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from sfumato import InputError
from sfumato.cli.reproduce import reproduce
from sfumato.research import run
from sfumato.research.real_data import (
    FLIGHT_COLUMNS,
    adjusted_r2,
    airlines,
    cancer,
    flight_scatter,
    flights,
    lasso_sir,
    market_fits,
    more_records,
    read,
    supermarket,
)
from sfumato.research.xia_tables import validation_study

app = typer.Typer()
app.command()(reproduce)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """60 records, 90 features, a response that follows the first; as CSV, and as Parquet with a text column too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 90))
    y = x[:, 0] + 0.1 * rng.normal(size=60)
    columns = {"y": y, **{f"f{j}": x[:, j] for j in range(90)}}
    folder = tmp_path_factory.mktemp("data")
    pa.csv.write_csv(pa.table(columns), folder / "table.csv")
    pa.parquet.write_table(pa.table({**columns, "split": ["a"] * 60}), folder / "table.parquet")
    return folder


def test_both_formats_give_the_same_standardised_numbers(table):
    (x, y), (other, same) = read(str(table / "table.csv")), read(str(table / "table.parquet"))
    assert x.shape == (60, 90) and np.allclose(x, other) and np.allclose(y, same)
    assert np.allclose(x.mean(axis=0), 0.0) and np.allclose(x.std(axis=0), 1.0)


def test_the_spline_explains_a_curve_and_not_noise():
    rng = np.random.default_rng(1)
    t = rng.normal(size=500)
    assert adjusted_r2(t, np.sin(t)) > 0.99
    assert abs(adjusted_r2(t, rng.normal(size=500))) < 0.05
    assert adjusted_r2(np.zeros(9), rng.normal(size=9)) == 0.0


def test_lasso_sir_finds_the_two_features_of_a_curved_link():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 400))
    found = lasso_sir(x, np.exp(x[:, 3] - x[:, 9]), 8)
    assert set(np.argsort(-np.abs(found))[:2]) == {3, 9} and found[3] * found[9] < 0


def test_table_3_compares_every_method_on_the_given_table(table):
    measured = supermarket(str(table / "table.csv"), 1000.0, "newest", 0)
    assert set(measured) == {"Lasso-SIR", "DP-SIni paper", "DP-SSIR paper", "DP-TRF paper", "DP-SSIR tight", "sfumato"}
    assert measured["Lasso-SIR"] > 0.9 and measured["sfumato"] > 0.9


@pytest.mark.parametrize(
    ("version", "printed"),
    [("newest", ("paper", 7, 7, 464**-1.1)), ("first", ("first", 3, 10, 464**-1.01))],
)
def test_table_3_has_the_slices_features_and_delta_of_its_version(version, printed):
    made = market_fits(2.0, version, 464)
    papers = [fit for name, fit in made.items() if name.endswith("paper")]
    assert {(fit.calibration, fit.n_slices, fit.max_features, fit.delta) for fit in papers} == {printed}
    assert made["DP-SSIR tight"].n_slices == printed[1] and len(papers) == 3


def test_table_3_does_not_depend_on_the_scale_of_the_response(table, tmp_path):
    """The paper standardises all variables; arctan of a response far from zero would fall in one bin."""
    x, y = read(str(table / "table.csv"))
    columns = {"y": 1e5 + 100.0 * y, **{f"f{j}": x[:, j] for j in range(20)}}
    pa.csv.write_csv(pa.table(columns), tmp_path / "far.csv")
    assert supermarket(str(tmp_path / "far.csv"), 1e6, "newest", 0)["DP-SSIR tight"] > 0.9


def test_sixty_times_the_records_are_enough_at_epsilon_1(table):
    measured = more_records(str(table / "table.csv"), 1.0, 60, 0)
    assert measured["sfumato"] > 0.9 and measured["features kept"] >= 1


def test_the_cancer_study_measures_areas_and_curves(table):
    measured = cancer(str(table / "table.parquet"), 1000.0, 0)
    assert measured["Lasso-SIR"] > 0.9 and measured["sfumato"] > 0.8
    assert measured["sfumato|0.00"] >= 0.0 and measured["sfumato|1.00"] == 1.0


def test_validation_is_compared_with_knowing_the_number():
    measured = validation_study(4000, 30, 0)
    assert len(measured) == 5 and measured["sfumato"] < 0.3


def test_the_page_draws_roc_curves_and_the_table_leaves_their_points_out(table, monkeypatch, tmp_path):
    study = replace(run.STUDIES["xia-cancer"], rows=run.STUDIES["xia-cancer"].rows[:1])
    monkeypatch.setitem(run.STUDIES, study.name, study)
    where = {"--data": table / "table.csv", "--cache": tmp_path / "c", "--html": tmp_path / "h.html"}
    where |= {"--markdown": tmp_path / "m.md", "--processes": 1, "--replications": 2}
    result = CliRunner().invoke(app, [study.name, *(str(word) for pair in where.items() for word in pair)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "h.html").read_text().count("<polyline") == 5
    page = (tmp_path / "m.md").read_text()
    assert "| epsilon = 2 |" in page and "|0.00" not in page
    assert "`sfumato reproduce xia-cancer --replications 2 --data table.csv`" in page


@pytest.mark.parametrize(
    ("study", "path", "said"),
    [("riboflavin", None, "path of a file"), ("xia-cancer", "nowhere.csv", "path of a file"), ("xia-slices", ".", "")],
)
def test_a_missing_or_superfluous_table_is_refused_in_a_sentence(study, path, said, tmp_path):
    with pytest.raises(InputError, match=f"data .*{said}"):
        list(run.execute(run.find(study), 1, tmp_path / "c", 1, None if path is None else Path(path)))


def test_a_table_without_y_is_refused(tmp_path):
    pa.csv.write_csv(pa.table({"z": [1.0, 2.0]}), tmp_path / "t.csv")
    with pytest.raises(InputError, match="no column y"):
        read(str(tmp_path / "t.csv"))


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """Three airlines, one small, whose delays follow the departure delay and the air time."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=900) for name in FLIGHT_COLUMNS}
    columns["arr_delay"] = 20 * columns["dep_delay"] + 5 * columns["air_time"] ** 2 + rng.normal(size=900)
    columns["carrier"] = ["UA"] * 400 + ["B6"] * 400 + ["OO"] * 100
    columns["arr_time"][3] = np.nan
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    pa.parquet.write_table(pa.table(columns, metadata=None), path)
    return str(path)


def test_airlines_keep_their_flights_and_every_method_is_measured(flown):
    assert {name: len(y) for name, (_, y) in airlines(flown).items()} == {"UA": 399, "B6": 400, "OO": 100}
    measured = flights(flown, 50.0, 0)
    names = ("FSIR, no privacy", "FSIR-IID as printed", "FSIR-MVG as printed", "sfumato")
    assert {f"{name}, correlation" for name in names} <= set(measured) and len(measured) == 7
    assert measured["FSIR, no privacy, correlation"] > 0.8


def test_the_scatter_plot_has_a_panel_of_every_method(flown):
    picture = flight_scatter(flown)
    words = {text.text for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")}
    assert words == {"FSIR, no privacy", "FSIR-IID as printed", "FSIR-MVG as printed", "sfumato"}


def test_a_table_without_the_columns_of_flights_is_refused_by_name(table):
    with pytest.raises(InputError, match="has no column carrier"):
        airlines(str(table / "table.csv"))
