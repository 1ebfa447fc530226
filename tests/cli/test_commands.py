"""The other commands do what they say."""

import json
import os

import numpy as np
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as library
from sfumato import datasets
from sfumato.model import load_model


@pytest.fixture
def model(sfumato, here, fit_words):
    assert sfumato(*fit_words, "--out", "los")[0] == 0
    return here / "los" / "model.json"


def test_the_demo_fits_flights_privately_and_names_its_report(sfumato, here):
    code, out, err = sfumato("demo", "--out", "demo.html")
    assert (code, err) == (0, "")
    for words in ("dep_delay", "±", "descent step 1", "picture of the first direction", "demo.html"):
        assert words in out
    assert "differentially private with (epsilon = 1, delta = 1e-06)" in out.replace("│\n│ ", "").replace("  ", "")
    page = (here / "demo.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "sched_arr_time" in page and "Rehearsal" not in page


def test_the_demo_refuses_a_directory_before_it_starts(sfumato, here):
    code, _, err = sfumato("demo", "--out", ".")
    assert code == 2 and "directory" in err


def test_transform_projects_every_record_in_order_and_says_it_is_not_private(sfumato, here, model, patients):
    code, out, err = sfumato("transform", "patients.csv", "--model", str(model), "--out", "projected.csv")
    assert code == 0 and "projected.csv" in out and "not private" in err
    table = pcsv.read_csv(patients).select(["age", "weight", "dose"])
    projected = pcsv.read_csv(here / "projected.csv")
    np.testing.assert_array_equal(projected["direction_1"], load_model(model).transform(table)[:, 0])
    for name in ("p.parquet", "p.feather"):
        assert sfumato("transform", "patients.csv", "--model", str(model), "--out", name)[0] == 0
    assert pq.read_table(here / "p.parquet").equals(feather.read_table(here / "p.feather"))


def test_transform_refuses_missing_values_or_drops_them(sfumato, here, model):
    (here / "new.csv").write_text("age,weight,dose\n1,2,3\n1,,3\n")
    words = ("transform", "new.csv", "--model", str(model), "--out", "p.csv")
    code, _, err = sfumato(*words)
    assert code == 2 and "--drop-missing" in err and not (here / "p.csv").exists()
    assert sfumato(*words, "--drop-missing")[0] == 0
    assert pcsv.read_csv(here / "p.csv").num_rows == 1


def test_transform_names_a_column_that_is_not_there(sfumato, here, model):
    (here / "new.csv").write_text("age,weigth,dose\n1,2,3\n")
    code, _, err = sfumato("transform", "new.csv", "--model", str(model), "--out", "p.csv")
    assert code == 2 and "no column 'weight'; did you mean 'weigth'?" in err


def test_report_makes_the_same_page_from_the_model(sfumato, here, model):
    code, out, _ = sfumato("report", str(model), "--out", "again.html")
    assert code == 0 and "again.html" in out
    assert (here / "again.html").read_bytes() == (here / "los" / "report.html").read_bytes()


def test_report_refuses_what_is_no_model(sfumato, here):
    (here / "x.json").write_text(json.dumps({"format": "sfumato-model/99"}))
    code, _, err = sfumato("report", "x.json")
    assert code == 2 and "unknown version" in err and not (here / "report.html").exists()


def test_explain_prints_the_plan_for_any_wish(sfumato):
    code, out, err = sfumato("explain", "--n", "20000", "--p", "15")
    assert (code, err) == (0, "")
    assert "Plan for 20,000 records of 15 features" in out and "(epsilon = 1, delta = 1e-06)" in out
    code, out, _ = sfumato(
        "explain", "-n", "9", "-p", "2", "--rho", "0.5", "--bounds", "--no-picture", "--classes", "a,b"
    )
    assert code == 0 and "rho = 0.5" in out and "middle of each" not in out and "sizes of the classes" in out


def test_explain_refuses_more_directions_than_features(sfumato):
    code, _, err = sfumato("explain", "--n", "100", "--p", "2", "--directions", "3")
    assert code == 2 and "at most 2" in err


def test_data_sets_are_listed_and_exported(sfumato, here):
    for words in (("datasets",), ("datasets", "list")):
        code, out, _ = sfumato(*words)
        assert code == 0 and all(name in out for name in datasets.names()) and "50,000" in out
    for name in ("wine.csv", "wine.parquet", "wine.feather"):
        assert sfumato("datasets", "export", "wine", name)[0] == 0
    assert pcsv.read_csv(here / "wine.csv").num_rows == pq.read_table(here / "wine.parquet").num_rows == 6497


def test_unknown_data_sets_and_formats_are_refused(sfumato, here):
    assert "'wine'" in sfumato("datasets", "export", "wines", "w.csv")[2]
    code, _, err = sfumato("datasets", "export", "wine", "w.xlsx")
    assert code == 2 and ".csv" in err and sorted(os.listdir(here)) == ["bounds.toml", "patients.csv"]


def test_the_bounds_template_has_names_and_no_values(sfumato, here):
    code, out, _ = sfumato("bounds", "init", "patients.csv", "--out", "new.toml")
    text = (here / "new.toml").read_text()
    assert code == 0 and "new.toml" in out
    assert '"age" = []\n"weight" = []\n"dose" = []\n# "ward" is not numeric' in text
    assert not any(ward in text for ward in ("north", "south", "west"))
    assert not [
        cell for cell in (here / "patients.csv").read_text().split(",")[5:300] if len(cell) > 6 and cell in text
    ]


def test_the_template_does_not_depend_on_the_values(sfumato, here):
    (here / "1.csv").write_text("age,los\n1,2\n3,4\n")
    (here / "2.csv").write_text("age,los\n-99.5,2e9\n0,0\n")
    for i in "12":
        sfumato("bounds", "init", f"{i}.csv", "--out", f"{i}.toml")
    assert (here / "1.toml").read_bytes() == (here / "2.toml").read_bytes()


def test_filled_bounds_are_not_overwritten(sfumato, here):
    before = (here / "bounds.toml").read_text()
    code, _, err = sfumato("bounds", "init", "patients.csv")
    assert code == 2 and "--force" in err and (here / "bounds.toml").read_text() == before
    assert sfumato("bounds", "init", "patients.csv", "--force")[0] == 0
    assert (here / "bounds.toml").read_text() != before


def test_names_of_any_kind_survive_the_template(sfumato, here, fit_words):
    (here / "odd.csv").write_text('"a ""b""","c=d","e.f ü",y\n1,2,3,4\n5,6,7,8\n')
    assert sfumato("bounds", "init", "odd.csv", "--out", "odd.toml")[0] == 0
    (here / "odd.toml").write_text((here / "odd.toml").read_text().replace("= []", "= [0, 9]"))
    code, out, _ = sfumato("fit", "odd.csv", "-y", "y", "--bounds", "odd.toml")
    assert code == 0 and 'a "b"' in out and "c=d" in out and "e.f ü" in out


def test_help_and_version(sfumato):
    code, out, _ = sfumato("--version")
    assert code == 0 and out.strip() == f"sfumato {library.__version__}"
    for words in ((), ("--help",), ("-h",)):
        code, out, _ = sfumato(*words)
        assert code == 0 and "Exit codes" in out and "demo" in out and "transform" in out
    assert "init" in sfumato("bounds")[1]
    for command in ("fit", "demo", "explain", "report", "transform", "datasets", "bounds"):
        code, out, _ = sfumato(command, "--help")
        assert code == 0 and "Usage" in out
