"""What the settings of a site make of it, and what it tells of its own mistakes."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato import Budget, InputError
from sfumato.federated.site import answer_or_refuse, handle
from sfumato.federated.site_settings import demand_kept, open_site
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.ledger.disk import file_system_of


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
    with pytest.raises(InputError, match=f"{key}: not in the site's settings"):
        open_site(config)


def test_an_error_that_nobody_expected_is_told_by_its_type_alone(config):
    head, values = answer_or_refuse(
        lambda: handle(open_site(config | {"features": "age", "seed": "a secret"}), '{"ask":"facts"}')
    )
    assert json.loads(head) == {"refused": "unexpected ValueError at the site."} and values == b""


@pytest.fixture
def mounts(tmp_path):
    """Mounts of a container, as Linux tells them."""
    lines = ["1 0 0:1 / / rw - overlay overlay rw", "2 1 8:1 /v /srv rw shared:1 - tmpfs none rw"]
    lines += ["3 1 8:1 /v /srv rw - ext4 /dev/sda rw", "4 1 8:1 / /srv/my\\040disk rw - xfs /dev/sdb rw"]
    (tmp_path / "mountinfo").write_text("\n".join(lines))
    return tmp_path / "mountinfo"


def test_an_account_that_does_not_outlast_a_job_is_refused(mounts):
    kept = {"ledger": "/srv/north.jsonl", "folder": "/srv/answers"}
    demand_kept(kept, Path("/srv/nvflare"), mounts)
    with pytest.raises(InputError, match=r"ledger: .* which jobs share and clean"):
        demand_kept(kept, Path("/srv"), mounts)
    with pytest.raises(InputError, match="folder: name it by its whole path"):
        demand_kept(kept | {"folder": "answers"}, Path("/srv/nvflare"), mounts)
    with pytest.raises(InputError, match=r"ledger: .* keep it on a volume"):
        demand_kept(kept | {"ledger": "/srv/../home/north.jsonl"}, Path("/srv/nvflare"), mounts)


def test_a_place_is_on_the_innermost_mount_and_the_latest_of_two(mounts):
    found = [file_system_of(Path(place), mounts) for place in ("/home/x", "/srv/x", "/srv/my disk/x", "/srvx")]
    assert found == ["overlay", "ext4", "xfs", "overlay"] and file_system_of(Path("/"), mounts / "none") == ""
