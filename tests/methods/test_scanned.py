"""Every estimator reads files as it reads arrays, and says what a scanned table lacks."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.methods import FAMILY, load

NAMES = ["a", "b", "c", "d"]
BOX = sf.Bounds(-5, 5)
EXPLAINING = [load(FAMILY[name]) for name in ("sir", "sparse-sir", "save", "dr", "phd")]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(700, 4))
    columns = {name: x[:, j] for j, name in enumerate(NAMES)}
    return pa.table(columns | {"y": x[:, 0] + rng.normal(size=700), "kind": np.where(x[:, 0] > 0, "ash", "oak")})


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("scanned") / "table.parquet"
    pq.write_table(table, path, row_group_size=97)
    return path


def arrays(table, *names):
    return np.column_stack([table[name].to_numpy() for name in names])


@pytest.mark.filterwarnings("ignore::sfumato.PrivacyWarning")
@pytest.mark.parametrize(
    ("estimator", "options", "y"),
    [
        *((kind(bounds=BOX, random_state=1), {"response": "y"}, "y") for kind in EXPLAINING),
        (sf.PrivatePCA(2, bounds=BOX, random_state=1), {}, None),
        (sf.PrivateSparsePCA(max_features=2, bounds=BOX, random_state=1), {}, None),
        (
            sf.PrivateLDA(classes=["ash", "oak"], bounds=BOX, random_state=1),
            {"response": "kind", "classes": ["ash", "oak"]},
            "kind",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_file_gives_the_bits_of_the_array(estimator, options, y, table, path):
    scanned = estimator.fit(sf.scan(path, features=NAMES, **options)).directions_
    known = None if y is None else table[y].to_numpy(zero_copy_only=False)
    assert np.array_equal(scanned, estimator.fit(arrays(table, *NAMES), known).directions_)


@pytest.mark.filterwarnings("ignore::sfumato.PrivacyWarning")
@pytest.mark.parametrize("kind", [sf.PrivatePCA, sf.PrivateSparsePCA, sf.PrivateCCA])
def test_a_table_too_large_to_hold_is_read_anew_and_gives_the_same_bits(kind, path):
    second = {"second": ["y"]} if kind is sf.PrivateCCA else {}
    held = kind(bounds="search", random_state=1).fit(sf.scan(path, features=NAMES, **second))
    source = sf.scan(path, features=NAMES, memory=0, **second)
    read = kind(bounds="search", random_state=1).fit(source)
    assert len(source.parts()) > 1
    assert np.array_equal(held.directions_, read.directions_)


@pytest.mark.filterwarnings("ignore::sfumato.PrivacyWarning")
def test_a_file_gives_both_sides_of_a_canonical_pair_and_their_names(table, path):
    cca = sf.PrivateCCA(1, bounds=BOX, y_bounds=BOX, random_state=1).fit(
        sf.scan(path, features=NAMES[:3], second=["d", "y"])
    )
    assert list(cca.feature_names_in_) == NAMES[:3] and list(cca.y_feature_names_in_) == ["d", "y"]
    other = sf.PrivateCCA(1, bounds=BOX, y_bounds=BOX, random_state=1)
    other.fit(table.select(NAMES[:3]).to_pandas(), table.select(["d", "y"]).to_pandas())
    assert np.array_equal(cca.y_weights_, other.y_weights_) and list(other.y_feature_names_in_) == ["d", "y"]
    other.fit(arrays(table, *NAMES[:3]), arrays(table, "d", "y"))
    assert np.array_equal(cca.x_weights_, other.x_weights_) and not hasattr(other, "y_feature_names_in_")


@pytest.mark.parametrize(
    ("estimator", "options", "remedy"),
    [
        (sf.PrivateSIR(), {"features": NAMES}, "scan.*response='y'"),
        (sf.PrivatePCA(), {"features": NAMES[:3], "second": ["d"]}, "has no use for"),
        (sf.PrivateCCA(), {"features": NAMES, "response": "y"}, "scan.*second="),
        (sf.PrivateLDA(), {"features": NAMES, "response": "y"}, "classes must be listed"),
        (
            sf.PrivateLDA(classes=["ash", "oak"]),
            {"features": NAMES, "response": "kind"},
            "classes must be given to scan",
        ),
        (sf.PrivateSIR(classes=[0, 1]), {"features": NAMES, "response": "y"}, "classes must be given to scan"),
    ],
)
def test_what_a_scanned_table_lacks_is_said_before_anything_is_spent(estimator, options, remedy, path):
    with pytest.raises(sf.InputError, match=remedy):
        estimator.fit(sf.scan(path, **options))
    assert not hasattr(estimator, "ledger_")
