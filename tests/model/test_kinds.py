"""Model files of the whole family: what was released comes back, to the bit, and nothing in a file is trusted."""

import dataclasses
import json
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import sfumato as sf
import sfumato.research
from sfumato.methods import FAMILY, added
from sfumato.model import from_json, load_inputs, load_model, save_model
from sfumato.report.build import build_document
from sfumato.schema import Node
from sfumato.sources.columns import Columns

BOX, N = sf.Bounds(-5, 5), 500
FITS = {
    "sir": (sf.PrivateSIR(bounds=BOX, picture=True), "y"),
    "sparse sir": (sf.PrivateSparseSIR(bounds=BOX, max_features=3, picture=True), "y"),
    "save": (sf.PrivateSAVE(n_slices=4, bounds="search"), "y"),
    "phd": (sf.PrivatePHD(bounds=BOX, n_directions=1), "y"),
    "dr": (sf.PrivateDR(bounds=BOX, n_directions=2, classes=["low", "high"]), "class"),
    "pca": (sf.PrivatePCA(2, relation="add-remove"), None),
    "sparse pca": (sf.PrivateSparsePCA(bounds=BOX, max_features=2), None),
    "lda": (sf.PrivateLDA(bounds=BOX, classes=["low", "high"]), "class"),
    "lda, unnamed classes": (sf.PrivateLDA(rho=0.5, bounds="search"), "class"),
    "cca": (sf.PrivateCCA(2, bounds=BOX, y_bounds=sf.Bounds([-9, -9, -9], [9, 9, 9])), "second"),
    "cca, found bounds": (sf.PrivateCCA(bounds="search", random_state=3), "second"),
    "multi sir": (sf.PrivateMultiSIR(bounds=BOX, n_directions=4), "second"),
    "censored sir": (sf.PrivateCensoredSIR(bounds="search", method="double-slicing"), "times"),
    "dp-ini": (sf.research.DPIni(n_directions=2, bounds=BOX), "y"),
    "printed dp-sir": (sf.research.DPSIR(n_directions=1, bounds=BOX, calibration="paper"), "y"),
    "dp-sini": (sf.research.DPSIni(n_directions=1, bounds=BOX, max_features="validate"), "y"),
    "dp-ssir": (sf.research.DPSSIR(n_directions=1, bounds=BOX, max_features=3), "y"),
    "dp-spca": (sf.research.DPSPCA(bounds=BOX, max_features=2), None),
    "flow sir": (sf.research.RayleighFlowSIR(bounds=BOX), "y"),
    "flow pca": (sf.research.RayleighFlowPCA(bounds=BOX), None),
    "flow lda": (sf.research.RayleighFlowLDA(bounds=BOX, classes=["low", "high"]), "class"),
    "printed flow lda": (
        sf.research.RayleighFlowLDA(bounds=BOX, classes=["low", "high"], calibration="paper"),
        "class",
    ),
    "flow cca": (sf.research.RayleighFlowCCA(1, bounds="search"), "second"),
    "truncated flow sir": (sf.research.TruncatedRayleighFlowSIR(bounds=BOX, max_features=2), "y"),
    "truncated flow pca": (sf.research.TruncatedRayleighFlowPCA(bounds=BOX, max_features=2), None),
}
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.PrivacyWarning")


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, 4)) * [2, 1, 1, 1]
    y = 2 * x[:, 0] - x[:, 1] + 0.3 * rng.normal(size=N)
    second = pd.DataFrame(rng.normal(size=(N, 3)) + x[:, :1], columns=["waist", "chins", "jumps"])
    table = pd.DataFrame(x, columns=["age", "weight", "dose", "height"])
    return {
        "x": table,
        "y": y,
        "second": second,
        "times": second[["waist", "jumps"]],
        "class": np.where(y > 0, "high", "low"),
        None: None,
    }


@pytest.fixture(scope="module")
def fitted(records):
    return {name: clone(estimator).fit(records["x"], records[y]) for name, (estimator, y) in FITS.items()}


def same(one, other):
    """Equal to the last bit; unknown numbers too."""
    if isinstance(one, sf.Bounds) or not dataclasses.is_dataclass(one):
        return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
    return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))


def test_every_kind_of_model_is_tried():
    tried = {type(estimator).__name__ for estimator, _ in FITS.values()}
    assert tried == {home.rpartition(".")[2] for home in (*FAMILY.values(), *added().values())}


NOT_KEPT = ("ledger_", "_binary", "_belief")


@pytest.mark.parametrize("name", FITS)
def test_a_round_trip_loses_no_bit(name, fitted, records, tmp_path):
    one, y = fitted[name], records[FITS[name][1]]
    back = load_model(save_model(one, tmp_path / "m.json"))
    assert type(back) is type(one) and back.ledger is None
    for attribute, value in vars(one).items():
        assert attribute in NOT_KEPT or same(value, getattr(back, attribute)), attribute
    assert back.ledger_.guarantee == one.ledger_.guarantee and len(back.ledger_) == len(one.ledger_)
    assert same(one.transform(records["x"]), back.transform(records["x"]))
    if isinstance(one, sf.PrivateCCA):
        assert all(map(same, one.transform(records["x"], y), back.transform(records["x"], y)))
    if hasattr(one, "predict"):
        assert (one.predict(records["x"]) == back.predict(records["x"])).all()
    assert repr(build_document(back, forecasts=False)) == repr(build_document(one, forecasts=False))
    again = save_model(back, tmp_path / "again.json")
    assert again.read_bytes() == (tmp_path / "m.json").read_bytes()


def test_the_columns_of_both_tables_survive(fitted, tmp_path):
    first = Columns(("age", "weight", "dose", "height"))
    second = Columns(("waist", "chins", "jumps"))
    inputs = load_inputs(save_model(fitted["cca"], tmp_path / "m.json", columns=first, second=second))
    assert inputs.features() == first and inputs.second.features() == second and inputs.response is None


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("pca", "estimator", "PrivateSIR", "parameters.classes must be present|must be"),
        ("pca", "estimator", "PrivatePCA\u0000", "estimator must be one of"),
        ("pca", "released.explained_variance_ratio", [0.1] * 9, "at most 2"),
        ("pca", "released.directions", [[1, 0, 0, 0], [1, 0, 0, 0]], "orthonormal"),
        ("pca", "released.directions", [[1, 0, 0], [0, 1, 0]], r"released.directions\[0\] must be a list of 4"),
        ("pca", "released.scale", [1, 1, 1, 1], "released.scale must be absent"),
        ("pca", "released.verdict.levels", ["weak"], "released.verdict.levels must be a list of 2"),
        ("pca", "released.verdict.levels", ["weak", "fine"], r"levels\[1\] must be one of"),
        ("pca", "parameters.classes", ["a"], "parameters.classes must be absent"),
        ("pca", "parameters.method", "descent", "parameters.method must be one of 'auto', 'refined'"),
        ("pca", "inputs.second", {"n_features": 1, "feature_names": None, "columns": None, "categorical": {}}, "null"),
        ("save", "parameters.n_slices", 1, "n_slices must be a whole number"),
        ("save", "parameters.n_slices", 10**30, "n_slices must be a whole number"),
        ("sparse sir", "released.support", [2, 0], "increasing order"),
        ("sparse sir", "released.support", [0, 4], r"released.support\[1\] must be a whole number"),
        ("sparse sir", "released.support", [], "one or more"),
        ("sparse sir", "released.screen.picked", [0, 0, 1], "different positions"),
        ("sparse sir", "parameters.max_features", "many", "max_features must be one of"),
        ("sparse pca", "parameters.max_features", 0, "max_features must be a whole number"),
        ("sparse pca", "released.directions", [[0.5, 0.5, 0.5, 0.5]], "zero in directions outside of support"),
        ("lda", "released.used", [0, 7], "used names others"),
        ("lda", "released.used", None, "released.used must be a list"),
        ("flow lda", "released.used", None, "rule and used go together"),
        ("lda", "released.rule.centres", [[1.0]], "a list of 2|priors must be a list of 1"),
        ("lda", "released.rule.root", [[1e308]], "finite number"),
        ("lda", "parameters.classes", [], "one or more"),
        ("cca", "inputs.second", None, "inputs.second must be the second table"),
        ("cca", "inputs.second.n_features", 2, "2 different names"),
        ("cca", "released.y_weights", [[1, 0, 0]] * 3, "released.y_weights must be a list of 2"),
        ("cca", "released.x_weights", [[9, 0, 0, 0], [0, 1, 0, 0]], "rows of length one"),
        ("cca", "released.bounds", {"lower": [0] * 4, "upper": [1] * 4}, "released.bounds.lower must be a list of 7"),
        ("cca", "parameters.y_bounds", {"lower": [0] * 4, "upper": [1] * 4}, "y_bounds.lower must be a list of 3"),
        ("cca", "parameters.n_directions", 4, "parameters.n_directions"),
        ("cca", "released.choice.n_directions", 1, "n_directions must be 2"),
    ],
)
def test_a_wrong_field_is_refused_by_its_place(name, place, value, words, fitted, tmp_path):
    content = json.loads(save_model(fitted[name], tmp_path / "m.json").read_text())
    *way, last = place.split(".")
    node = content
    for step in way:
        node = node[step]
    node[last] = value
    (tmp_path / "hostile.json").write_text(json.dumps(content))
    with pytest.raises(sf.InputError, match=rf"^model: .*({words})") as caught:
        load_model(tmp_path / "hostile.json")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def places(node, way=()):
    yield way
    if isinstance(node, dict | list):
        for step, child in node.items() if isinstance(node, dict) else list(enumerate(node))[:2]:
            yield from places(child, (*way, step))


@pytest.mark.parametrize("name", FITS)
def test_whatever_is_put_anywhere_loads_or_is_refused_in_one_sentence(name, fitted, tmp_path):
    content = json.loads(save_model(fitted[name], tmp_path / "m.json").read_text())
    content["ledger"]["entries"] = content["ledger"]["entries"][:2] if name == "sir" else []  # the same for all
    loaded = 0
    for *way, last in filter(None, list(places(content))):
        node = content
        for step in way:
            node = node[step]
        kept = node[last]
        for node[last] in (None, True, 0, -1, 1e150, 1e308, "x", [], {}, [[]], {"a": {}}):
            with suppress(sf.InputError):
                model = from_json(Node(content))
                loaded += 1
                assert build_document(model, forecasts=False).loadings, (way, last)
                one = pd.DataFrame(np.ones((1, 4)), columns=getattr(model, "feature_names_in_", None))
                assert model.transform(one).shape == (1, len(model.directions_))
        node[last] = kept
    assert loaded > 50
