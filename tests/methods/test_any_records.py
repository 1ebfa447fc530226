"""No table inside the domain raises after the first charge: not an empty one, not under the user's numpy settings."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.federated import simulate
from sfumato.methods import FAMILY, load

NAMES = ["a", "b", "c", "d"]
CLASSES = ["no", "yes"]
ESTIMATORS = {
    "sir": (sf.PrivateSIR(picture=True), "number"),
    "sir, one shot": (sf.PrivateSIR(method="one-shot"), "number"),
    "sir of names": (sf.PrivateSIR(), "text"),
    "sir of classes": (sf.PrivateSIR(classes=CLASSES), "text"),
    "sparse sir": (sf.PrivateSparseSIR(), "number"),
    "save": (sf.PrivateSAVE(), "number"),
    "dr": (load(FAMILY["dr"])(), "number"),
    "phd": (load(FAMILY["phd"])(), "number"),
    "lda": (sf.PrivateLDA(), "text"),
    "lda of classes": (sf.PrivateLDA(classes=CLASSES), "text"),
    "pca": (sf.PrivatePCA(2), None),
    "sparse pca": (sf.PrivateSparsePCA(max_features=2), None),
    "cca": (sf.PrivateCCA(1), "table"),
    "multi sir": (sf.PrivateMultiSIR(), "table"),
    "censored sir": (sf.PrivateCensoredSIR(), "pair"),
}
BOX = sf.Bounds(-3, 3)


def with_bounds(estimator, bounds):
    boxes = {"bounds": bounds, "y_bounds": bounds} if isinstance(estimator, sf.PrivateCCA) else {"bounds": bounds}
    return estimator.set_params(**boxes)


def empty_table():
    numbers = {name: pa.array([], pa.float64()) for name in (*NAMES, "number")}
    return pa.table(numbers | {"text": pa.array([], pa.string())})


def empty_tables(folder):
    table = empty_table()
    pq.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.feather")
    (folder / "t.csv").write_text(",".join(table.column_names) + "\n")
    return [table, folder / "t.parquet", folder / "t.feather", folder / "t.csv"]


@pytest.mark.parametrize("bounds", [BOX, "search"], ids=["given", "found"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_table_of_no_records_is_answered_where_their_number_is_private(name, bounds, tmp_path):
    estimator, response = ESTIMATORS[name]
    with_bounds(estimator, bounds).set_params(relation="add-remove")
    for table in empty_tables(tmp_path):
        if response in ("table", "pair"):
            source = sf.scan(table, features=["a", "b"], second=["c", "d"])
        else:
            kind = {"number": "numeric", "text": "categorical", None: None}[response]
            declared = getattr(estimator, "classes", None)
            source = sf.scan(table, response=response, features=NAMES, classes=declared, response_kind=kind)
        assert np.isfinite(estimator.fit(source).directions_).all()
    empty = {
        "number": np.empty(0),
        "text": np.empty(0, dtype=str),
        "table": np.empty((0, 2)),
        "pair": np.empty((0, 2)),
        None: None,
    }
    assert np.isfinite(estimator.fit(np.empty((0, 4)), empty[response]).directions_).all()
    estimator.set_params(relation="replace")
    for X, y in ((np.empty((0, 4)), empty[response]), (source, None)):
        with pytest.raises(sf.InputError, match="minimum of 1"):
            estimator.fit(X, y)


def hostile(rng, n=200):
    """Records that under- and overflow in whatever is done to them."""
    x = rng.normal(size=(n, 4))
    x[:8] = rng.choice([5e-324, -5e-324, 2e-308, 1.7e308, -1.7e308, 0.0, -0.0], (8, 4))
    y = rng.normal(size=n)
    y[:8] = [5e-324, -5e-324, 1.7e308, -1.7e308, 2e-308, -0.0, 1e-160, 0.0]
    return x, y


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("bounds", [BOX, "search"], ids=["given", "found"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_record_raises_where_the_user_lets_numpy_raise(name, bounds, relation):
    estimator, response = ESTIMATORS[name]
    x, y = hostile(np.random.default_rng(0))
    given = {"number": y, "text": np.where(y > 0, "yes", "no"), "table": x[:, ::-1], "pair": x[:, :1:-1], None: None}[
        response
    ]
    with np.errstate(all="raise"):
        fitted = with_bounds(estimator, bounds).set_params(relation=relation).fit(x, given)
    assert np.isfinite(fitted.directions_).all()


def test_no_record_raises_at_a_site_or_on_a_device_either():
    rng = np.random.default_rng(0)
    x, y = hostile(rng)
    public = rng.normal(size=(200, 4))
    with np.errstate(all="raise"):
        simulate(sf.PrivateSIR(bounds=BOX), [(x[::2], y[::2]), (x[1::2], y[1::2])])
        sf.LocalSIR(bounds=BOX).fit(x, y)
        sf.LabelPrivateSIR(edges=[0.0]).fit(public, y)
        sf.LabelPrivateSIR().fit(public, y)
        sf.LabelPrivateIHT(response_range=(-1, 1)).fit(public, y)
