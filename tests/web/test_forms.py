"""Deliberate mistakes on the forms: each gets one helpful sentence, and spends nothing."""

import pytest

from sfumato.methods import FAMILY
from sfumato.sources.formats import open_tables
from sfumato.web.desk import Desk
from sfumato.web.forms import (
    METHODS,
    FormError,
    Terms,
    columns_of,
    fields_of,
    first_fields,
    read_declaration,
    read_settings,
)

RECORDS, PERSONS = Terms("replace", "record"), Terms("add-remove", "person")


@pytest.fixture(scope="module")
def columns(patients):
    return columns_of(open_tables([patients])[0])


@pytest.fixture
def filled(columns):
    """The form as it should be: los is explained by age, bmi and dose."""
    return first_fields(columns) | {"role-5": "response"}


def read(columns, fields, terms=RECORDS):
    return read_declaration("patients.csv", columns, fields, terms)


def test_the_first_form_leaves_out_ids_and_text_and_suggests_ranges_from_names(columns):
    fields = first_fields(columns)
    assert [fields[f"role-{i}"] for i in range(6)] == ["out", "feature", "feature", "feature", "out", "feature"]
    assert (fields["lower-1"], fields["upper-1"]) == ("0", "120")
    assert "lower-3" not in fields


def test_every_method_of_the_family_is_offered():
    assert set(METHODS) == set(FAMILY)


def test_a_form_becomes_a_declaration_and_back(columns, filled):
    said = read(columns, filled | {"role-4": "feature", "categories-4": "north | south", "search": "on"})
    assert said.response == "los" and said.features == ("age", "bmi", "dose", "ward")
    assert said.bounds == {"age": (0.0, 120.0), "bmi": (5.0, 100.0)}
    assert said.categorical == {"ward": ("north", "south")}
    assert read(columns, fields_of(said, columns)) == said


MISTAKES = [
    ({"role-5": "feature"}, "Choose the column to explain"),
    ({"role-1": "response"}, "only one column can have the role"),
    ({f"role-{i}": "out" for i in range(5)}, "at least one column as a feature"),
    ({"lower-1": "120", "upper-1": "0"}, "the lower bound must be below the upper one"),
    ({"lower-1": "0", "upper-1": ""}, "fill in both bounds, or neither"),
    ({"lower-3": "1,5", "upper-3": "2"}, "with a point, as 1.5"),
    ({"lower-3": "low", "upper-3": "2"}, "is no number"),
    ({"lower-3": "nan", "upper-3": "2"}, "is no number"),
    ({"lower-3": "-1e200", "upper-3": "2"}, "is no number"),
    ({"role-4": "feature"}, "'ward' is not numeric: list its categories"),
    ({"role-4": "feature", "categories-4": "north"}, "2 or more different categories"),
    ({"role-4": "feature", "categories-4": "north | north"}, "2 or more different categories"),
    ({"role-4": "feature", "categories-4": "a=b | c"}, "with '=' cannot be declared"),
    ({"estimator": "pca"}, "explains no column"),
    ({"estimator": "cca", "role-5": "feature"}, "give the columns of the second"),
    ({"role-3": "second"}, "has no second set"),
    ({"estimator": "magic"}, "choose one of those offered"),
    ({"role-1": "king"}, "choose one of those offered"),
    ({"drop-missing": "on"}, "makes their number private"),
    ({"role-0": "person"}, "The account protects single records"),
    ({"categories-5": "no | yes", "response-kind": "numeric"}, "listed classes is no number"),
]


@pytest.mark.parametrize(("changed", "words"), MISTAKES)
def test_a_mistake_is_told_in_one_sentence_beside_its_field(changed, words, columns, filled):
    with pytest.raises(FormError) as caught:
        read(columns, filled | changed)
    told = [sentence for _, sentence in caught.value.found if words in sentence]
    assert len(told) == 1 and told[0].endswith(".")


def test_all_mistakes_are_told_at_once(columns, filled):
    with pytest.raises(FormError) as caught:
        read(columns, filled | {"lower-1": "x", "lower-3": "1", "drop-missing": "on"})
    assert [field for field, _ in caught.value.found] == ["lower-1", "lower-3", "drop-missing"]


@pytest.mark.parametrize("rows", ["0", "-1", "many", "1.5", "9999999"])
def test_rows_of_a_person_are_a_whole_number(rows, columns, filled):
    with pytest.raises(FormError, match="whole number from 1 on"):
        read(columns, filled | {"rows-per-person": rows}, PERSONS)


def test_an_account_of_persons_needs_to_know_whose_rows(columns, filled):
    with pytest.raises(FormError, match="whole number"):
        read(columns, filled, PERSONS)
    assert read(columns, filled | {"role-0": "person"}, PERSONS).rows_per_person == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"epsilon": "0"}, "above 0"),
        ({"epsilon": "-1"}, "above 0"),
        ({"epsilon": "1,5"}, "with a point"),
        ({"epsilon": "much"}, "is no number"),
        ({"delta": "1"}, "below 1"),
        ({"directions": "two"}, "a whole number from 1 on"),
        ({"max-features": "0"}, "a whole number from 1 on"),
    ],
)
def test_a_mistake_in_the_budget_is_told(fields, words, columns, filled):
    with pytest.raises(FormError, match=words):
        read_settings(read(columns, filled), {"picture": "on"} | fields)


@pytest.mark.parametrize("name", [" age", "a\nb", "a\rb"])
def test_names_that_no_command_can_say_are_refused(name, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: [1.0], "y": [2.0]}), tmp_path / "odd.parquet")
    odd = columns_of(Desk(tmp_path).table("odd.parquet"))
    with pytest.raises(FormError, match="cannot be used; rename it"):
        read_declaration("odd.parquet", odd, {"role-0": "feature", "role-1": "response"}, RECORDS)


def test_wide_tables_are_declared_by_patterns(tmp_path):
    (tmp_path / "wide.csv").write_text(",".join(["y", *(f"gene_{i}" for i in range(300))]) + "\n")
    wide = columns_of(Desk(tmp_path).table("wide.csv"))
    said = read_declaration("wide.csv", wide, {"response": "y", "features": "gene_1*\n gene_2 "}, RECORDS)
    assert said.features == ("gene_1*", "gene_2")
    for fields, words in [
        ({"response": "yy", "features": "gene_1*"}, "did you mean 'y'"),
        ({"response": "y", "features": "protein_*"}, "no column matches"),
    ]:
        with pytest.raises(FormError, match=words):
            read_declaration("wide.csv", wide, fields, RECORDS)
