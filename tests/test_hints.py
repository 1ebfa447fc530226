"""What names suggest: units and ranges of measurements, never a word about a cell."""

import inspect

import pytest

from sfumato import hints
from sfumato.hints import cautions, hint_of, visible


@pytest.mark.parametrize(
    ("name", "ends", "unit"),
    [
        ("age", (0, 120), "years"),
        ("Age at admission", (0, 120), "years"),
        ("age_months", (0, 1440), "months"),
        ("heartRate", (0, 300), "per minute"),
        ("weight_lb", (0, 900), "lb"),
        ("HbA1c", (2, 25), "%"),
        ("fat (%)", (0, 100), "%"),
        ("day_of_year", (1, 366), ""),
        ("is_smoker", (0, 1), "no or yes"),
    ],
)
def test_the_name_of_a_measurement_tells_its_range(name, ends, unit):
    hint = hint_of(name)
    assert (hint.lower, hint.upper) == ends and hint.unit == unit and hint.note == ""


@pytest.mark.parametrize(
    ("name", "sort"),
    [
        ("patientID", "identifier"),
        ("email", "identifier"),
        ("customer", "identifier"),
        ("dob", "date"),
        ("zip", "code"),
    ],
)
def test_columns_that_are_hardly_features_are_told_by_their_names(name, sort):
    assert hint_of(name).sort == sort and hint_of(name).note.endswith(".")


@pytest.mark.parametrize("name", ["voltage", "dose", "idle_time", "dated", "x1", "", "年齢", "\x1b[31m", "kid"])
def test_other_names_tell_nothing(name):
    assert hint_of(name) == hints.Hint()


def test_hints_know_names_and_public_numbers_only():
    assert list(inspect.signature(hint_of).parameters) == ["name"]
    assert list(inspect.signature(cautions).parameters) == ["epsilon", "delta", "n_records"]


def test_nothing_is_said_of_a_private_number_of_records():
    assert cautions(1.0, 0.5, None) == ()


def test_what_prints_stays_as_it_is():
    assert visible("größe 年齢 😀") == "größe 年齢 😀"
