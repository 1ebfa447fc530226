"""What is unusual: odd names, odd numbers, odd files; and two fits compared."""

import csv
import os
import pty

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from sfumato import Bounds, PrivateSIR
from sfumato.model import save_model
from sfumato.simulate import xia


def test_excluded_columns_are_no_features(sfumato):
    code, out, err = sfumato("fit", "patients.csv", "-y", "los", "--exclude", "war*,dose", "--dry-run")
    assert code == 0 and "of 2 features" in out, err
    code, _, err = sfumato("fit", "patients.csv", "-y", "los", "--exclude", "dosis", "--dry-run")
    assert code == 2 and "exclude: there is no column 'dosis'; did you mean 'dose'?" in err


def test_names_of_identifiers_dates_and_codes_are_noted(sfumato, here):
    names = ["patient_id", "zip_code", "x1", "x2"]
    rows = "".join(f"{i},{i % 9},{i % 7},{i % 5},{i % 11}\n" for i in range(300))
    (here / "odd.csv").write_text(",".join([*names, "y"]) + "\n" + rows)
    (here / "wide.toml").write_text("[bounds]\n" + "".join(f'"{name}" = [0, 300]\n' for name in names))
    _, _, err = sfumato("fit", "odd.csv", "-y", "y", "--bounds", "wide.toml", "--out", "odd", "--no-picture")
    assert "'patient_id' looks like that of an identifier" in err and "'zip_code' looks like that of a code" in err
    assert "x1" not in err


def test_an_unusual_budget_is_noted_where_nobody_can_be_asked(sfumato, fit_words):
    code, _, err = sfumato(*fit_words, "--epsilon", "20", "--delta", "0.01", "--out", "loud")
    assert code == 0
    assert [err.count(words) for words in ("promises a person very little", "is not below 1 / records")] == [1, 1]


def test_an_unusual_budget_is_asked_about_at_a_terminal_and_no_spends_nothing(start, here, fit_words):
    ours, theirs = pty.openpty()
    words = (*fit_words, "--epsilon", "20", "--out", "loud")
    process = start(*words, stdin=theirs, stderr=theirs)
    os.write(ours, b"n\n")
    process.communicate(timeout=120)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 2 and not (here / "loud").exists()


def test_fractions_after_a_comma_are_read_if_said_so(sfumato, here):
    rows = "".join(f"{i % 7},5;{i % 5},25;{i % 7}\n" for i in range(300))
    (here / "commas.csv").write_text("a;b;y\n" + rows)
    assert sfumato("bounds", "init", "commas.csv", "--decimal", ",", "--out", "some.toml")[0] == 0
    assert {'"a"', '"b"', '"y"'} <= set((here / "some.toml").read_text().replace("#", " ").split())
    (here / "some.toml").write_text("[bounds]\na = [0, 8]\nb = [0, 6]\n")
    words = ("fit", "commas.csv", "-y", "y", "--decimal", ",", "--bounds", "some.toml", "--out", "los", "--no-picture")
    assert sfumato(*words)[0] == 0
    assert sfumato("transform", "commas.csv", "--model", "los/model.json", "--decimal", ",", "--out", "x.csv")[0] == 0
    code, _, err = sfumato("fit", "commas.csv", "-y", "y", "--decimal", ";", "--out", "never")
    assert code == 2 and "decimal must be '.' or ','" in err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("sixteen.csv", "a,b,y\n1,2,3\n".encode("utf-16"), "is in UTF-16, as spreadsheets write it; save it as UTF-8."),
        ("comma.csv", b"a;b;y\n1,5;2;3\n", "where fractions follow a comma say so (--decimal ,"),
        ("date.csv", b"a,b,y\n2024-01-01,2,3\n", "a date perhaps; make it an age or a duration"),
    ],
)
def test_odd_files_are_told_what_they_are(name, content, words, sfumato, here):
    (here / name).write_bytes(content)
    code, _, err = sfumato("fit", name, "-y", "y", "--out", "never")
    assert code == 2 and words in err and not (here / "never").exists()


def test_a_seed_that_no_model_file_can_hold_is_refused(sfumato, fit_words):
    code, _, err = sfumato(*fit_words, "--seed", str(10**30), "--out", "never")
    assert code == 2 and "--seed" in err


def test_neither_control_characters_nor_formulas_leave_with_a_name(sfumato, here, tmp_path):
    sample = xia("M1", n=3_000, p=2, random_state=0)
    odd = ["red\x1b[31m", "=1+1"]
    pcsv.write_csv(pa.table([*sample.x.T, sample.y], names=[*odd, "y"]), here / "odd.csv")
    code, out, err = sfumato("fit", "odd.csv", "-y", "y", "--out", "odd")
    assert code == 0 and "\x1b" not in out + err and "red\\x1b[31m" in out
    with (here / "odd" / "directions.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["feature", odd[0], "'=1+1"]


def test_two_fits_are_compared(sfumato, here):
    sample = xia("M1", n=5_000, p=3, random_state=0)
    for seed in (1, 2):
        fit = PrivateSIR(bounds=Bounds(-1.5, 1.5), random_state=seed).fit(sample.x, sample.y)
        save_model(fit, here / f"{seed}.json")
    code, out, _ = sfumato("compare", "1.json", "2.json")
    assert code == 0 and "° apart" in out and "(epsilon = 1, delta = 1e-06)" in out
    other = PrivateSIR(bounds=Bounds(-1.5, 1.5), random_state=1).fit(sample.x[:, :2], sample.y)
    save_model(other, here / "other.json")
    code, _, err = sfumato("compare", "1.json", "other.json")
    assert code == 2 and "different features" in err


def test_a_declared_class_that_never_occurs_is_noted_by_its_noisy_count(sfumato):
    words = (
        "fit",
        "patients.csv",
        "-y",
        "ward",
        "--features",
        "age,weight,dose",
        "--bounds",
        "bounds.toml",
        "--no-picture",
    )
    code, _, err = sfumato(*words, "--classes", "north,south,wset", "--out", "wards")
    assert code == 0 and "class 'wset' was declared, but hardly a record has it" in err
    assert "'north' was declared" not in err and "'south' was declared" not in err
    _, _, err = sfumato(*words, "--classes", "north,south,west", "--out", "wards")
    assert "was declared" not in err


def test_a_declared_category_that_never_occurs_is_noted_by_its_noisy_mean(sfumato, here):
    rows = "".join(f"{20 + i % 70},{('north', 'south')[i % 3 == 0]},{i % 11}\n" for i in range(12_000))
    (here / "many.csv").write_text("age,ward,y\n" + rows)
    (here / "age.toml").write_text("[bounds]\nage = [0, 120]\n")
    words = ("fit", "many.csv", "-y", "y", "--bounds", "age.toml", "--no-picture", "--out", "wards")
    code, _, err = sfumato(*words, "--categorical", "ward=north|south|wset")
    assert code == 0 and "at most one record in 25 has 'ward=wset'" in err and "ward=south" not in err
