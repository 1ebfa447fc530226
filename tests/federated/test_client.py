"""What a SuperNode's settings make a site of, and what it tells of its own mistakes."""

import json

import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato import Budget, InputError
from sfumato.federated.flower.client import open_site
from sfumato.federated.site import answer_or_refuse, handle
from sfumato.privacy.ledger import FileLedger


@pytest.fixture
def config(tmp_path):
    columns = {
        "age": [31.0, 47.0, 58.0],
        "bmi": [20.0, 30.0, 25.0],
        "ward": ["n", "s", "w"],
        "ill": ["no", "yes", "no"],
    }
    pyarrow.csv.write_csv(pa.table(columns), tmp_path / "data.csv")
    FileLedger(tmp_path / "north.jsonl", Budget.approximate(1.0, 1e-5))
    files = {"data": "data.csv", "ledger": "north.jsonl", "folder": "answers"}
    return {key: str(tmp_path / name) for key, name in files.items()} | {"name": "north", "response": "ill"}


def test_settings_of_a_node_choose_columns_classes_and_categories(config):
    told = config | {"features": "age|ward", "classes": "no|yes", "categorical.ward": "n|s|w"}
    head, _ = handle(open_site(told), '{"ask":"facts"}')
    facts = json.loads(head)
    assert facts["name"] == "north" and facts["n_records"] == 3 and not facts["rehearsal"]
    assert facts["classes"] == ["no", "yes"]
    assert facts["n_features"] == 3 and facts["feature_names"][0] == "age"  # age, and two columns for three wards


def test_a_node_may_have_a_second_table_and_no_response(config):
    del config["response"]
    facts = json.loads(handle(open_site(config | {"features": "age", "second": "bmi"}), '{"ask":"facts"}')[0])
    assert (facts["n_features"], facts["n_second"], facts["has_response"]) == (2, 1, False)


@pytest.mark.parametrize("key", ["name", "data", "ledger", "folder"])
def test_a_setting_that_is_missing_is_named(config, key):
    del config[key]
    with pytest.raises(InputError, match=f"node-config: '{key}' is missing"):
        open_site(config)


def test_an_error_that_nobody_expected_is_told_by_its_type_alone(config):
    head, values = answer_or_refuse(
        lambda: handle(open_site(config | {"features": "age", "seed": "a secret"}), '{"ask":"facts"}')
    )
    assert json.loads(head) == {"refused": "unexpected ValueError at the site."} and values == b""
