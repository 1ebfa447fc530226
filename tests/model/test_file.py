"""A model file holds what was released, exactly, and nothing in it is trusted."""

import copy
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato import Bounds, Budget, BudgetError, InputError, PrivatePCA, PrivateSIR, research
from sfumato.methods.reference import SIR
from sfumato.model import FORMAT, format_json, load_inputs, load_model, save_model, standalone
from sfumato.privacy.events import Gaussian, Laplace, NoGuarantee, RandomisedResponse, Selection
from sfumato.privacy.ledger import Entry, FileLedger, Ledger, Mark
from sfumato.report.build import build_document
from sfumato.report.words import marks_in
from sfumato.sources.columns import Columns

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ["age", "weight", "ward=west"]


def frame(n=4000):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 3))
    return pd.DataFrame(x, columns=NAMES), x @ [1.0, -0.5, 0.1] + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return PrivateSIR(bounds=Bounds([-3] * 3, [3] * 3), picture=True, random_state=2).fit(*frame())


@pytest.fixture
def content(fitted, tmp_path):
    return json.loads(save_model(fitted, tmp_path / "m.json").read_text())


def refused(content, tmp_path) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "hostile.json").write_text(text)
    with pytest.raises(InputError) as caught:
        load_model(tmp_path / "hostile.json")
    message = str(caught.value)
    assert message.startswith("model: ") and "\n" not in message and len(message) < 300
    return message


@pytest.mark.parametrize(
    "parameters",
    [
        {"bounds": Bounds([-3] * 3, [3] * 3), "picture": True},
        {"bounds": Bounds(-3, 3), "picture": 0.1, "n_directions": 2, "rho": 0.3},
        {"bounds": None, "relation": "add-remove", "method": "one-shot", "random_state": 3, "epsilon": 3},
    ],
)
def test_a_round_trip_loses_no_bit(parameters, tmp_path):
    table, y = frame()
    sir = PrivateSIR(**parameters).fit(table, y)
    back = load_model(save_model(sir, tmp_path / "m.json"))
    for name in ("directions_", "standard_errors_", "eigenvalues_", "mean_", "scale_"):
        np.testing.assert_array_equal(getattr(back, name), getattr(sir, name))
    assert back.bounds_ == sir.bounds_ and back.bounds == sir.bounds
    assert back.ledger_.entries == sir.ledger_.entries and back.ledger_.guarantee == sir.ledger_.guarantee
    assert back.ledger_.total(1e-6) == sir.ledger_.total(1e-6)
    np.testing.assert_array_equal(back.transform(table), sir.transform(table))
    assert list(back.get_feature_names_out()) == list(sir.get_feature_names_out())
    assert build_document(back) == build_document(sir)


def test_a_file_that_does_not_tell_the_box_of_the_fit_has_scores_that_are_projections(content, fitted, tmp_path):
    x = frame()[0] * 4.0
    assert load_model(save_model(fitted, tmp_path / "new.json")).box_ == fitted.box_
    del content["released"]["box"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    old = load_model(tmp_path / "old.json")
    assert old.box_ is None and np.allclose(old.transform(x), (x.to_numpy() - old.mean_) @ old.directions_.T)
    assert not np.allclose(old.transform(x), fitted.transform(x))


def test_saving_what_was_loaded_gives_the_same_file(fitted, tmp_path):
    first = save_model(fitted, tmp_path / "1.json")
    assert save_model(load_model(first), tmp_path / "2.json").read_bytes() == first.read_bytes()


def test_classes_and_a_table_without_names_survive(tmp_path):
    table, y = frame()
    sir = PrivateSIR(classes=[0, 1]).fit(table.to_numpy(), (y > 0).astype(int))
    path = save_model(sir, tmp_path / "m.json")
    assert load_model(path).classes == [0, 1]
    with pytest.raises(InputError, match="without column names"):
        load_inputs(path).features()


def test_the_columns_survive(fitted, tmp_path):
    columns = Columns(("age", "weight", "ward"), {"ward": ("north", "west")})
    inputs = load_inputs(save_model(fitted, tmp_path / "m.json", response="los", columns=columns))
    assert inputs.features() == columns and inputs.response == "los"


def test_the_file_can_be_read_by_hand(fitted, tmp_path):
    lines = save_model(fitted, tmp_path / "m.json").read_text().splitlines()
    assert lines[1] == f'  "format": "{FORMAT}",'
    assert '    "feature_names": ["age", "weight", "ward=west"],' in lines
    assert any("guarantee" in line and "rehearsal" in line for line in lines)


def test_the_file_holds_no_record(tmp_path):
    """Every number in the file is a parameter or comes from a noisy release: none is a cell of the table."""
    table, y = frame()
    sir = PrivateSIR(picture=True).fit(table, y)
    text = save_model(sir, tmp_path / "m.json").read_text()
    cells = {repr(float(value)) for value in [*table.to_numpy().ravel(), *y]}
    assert not cells & set(text.replace(",", " ").replace("]", " ").replace("[", " ").split())


def test_numbers_that_are_not_finite_do_not_lose_a_paid_fit(fitted, tmp_path):
    sir = copy.deepcopy(fitted)
    sir.standard_errors_ = sir.standard_errors_ * math.inf
    back = load_model(save_model(sir, tmp_path / "m.json"))
    assert np.isnan(back.standard_errors_).all()


@pytest.mark.parametrize(
    "event",
    [Gaussian(0.1), Laplace(0.5, True), Selection(0.2, 3), RandomisedResponse(1.0, 4), NoGuarantee("printed formula")],
)
def test_every_kind_of_event_survives(event, fitted, tmp_path):
    sir = copy.copy(fitted)
    sir.ledger_ = Ledger(Budget.zcdp(9.0), "replace")
    sir.ledger_.record(Entry("p", "q", event, 1.0, 2.0, 0.5, "replace"))
    assert load_model(save_model(sir, tmp_path / "m.json")).ledger_.entries == sir.ledger_.entries


def test_a_model_and_its_report_note_the_head_of_the_ledger_and_a_cut_one_is_noticed(tmp_path):
    path = tmp_path / "study.jsonl"
    ledger = FileLedger(path, Budget.approximate(5, 1e-6))
    before = path.read_bytes()
    sir = PrivateSIR(epsilon=1.0, bounds="search", ledger=ledger).fit(*frame(500))
    back = load_model(save_model(sir, tmp_path / "m.json"))
    (shown,) = marks_in(back.report(tmp_path / "r.html").read_text())
    assert back.ledger_.mark == Mark(ledger.id, sir.ledger_.head, path.stat().st_size)
    assert (shown.ledger, shown.head) == (ledger.id, sir.ledger_.head)
    PrivateSIR(epsilon=1.0, bounds="search", ledger=ledger).fit(*frame(500))
    assert FileLedger(path).verify(back.ledger_.mark, shown).endswith("2 noted head(s) among them.")
    path.write_bytes(before)  # rolled back: whole, and says that nothing was spent
    assert FileLedger(path).verify()
    for mark in (back.ledger_.mark, shown):
        with pytest.raises(BudgetError, match="cut or rewritten"):
            FileLedger(path).verify(mark)
    other = FileLedger(tmp_path / "other.jsonl", Budget.approximate(5, 1e-6))
    with pytest.raises(BudgetError, match="another ledger"):
        other.verify(back.ledger_.mark)


def test_a_model_file_that_notes_no_head_still_loads(tmp_path):
    sir = PrivateSIR(epsilon=1.0, bounds="search").fit(*frame(500))
    path = save_model(sir, tmp_path / "m.json")
    said = json.loads(path.read_text())
    assert said["ledger"].pop("mark") is None
    path.write_text(json.dumps(said))
    assert load_model(path).ledger_.mark is None and load_model(path).ledger_.entries == sir.ledger_.entries


def test_a_verdict_that_was_written_before_directions_were_judged_one_by_one_still_loads(fitted, tmp_path):
    path = save_model(fitted, tmp_path / "m.json")
    assert load_model(path).verdict_ == fitted.verdict_ and len(fitted.verdict_.levels) == len(fitted.directions_)
    said = json.loads(path.read_text())
    said["released"]["verdict"].pop("levels")
    path.write_text(json.dumps(said))
    old = load_model(path).verdict_
    assert old.levels == () and old.headline == old.level.capitalize() and old.sentence == fitted.verdict_.sentence


def test_a_model_tells_nothing_of_other_runs_on_a_shared_ledger(tmp_path):
    ledger = FileLedger(tmp_path / "study.jsonl", Budget.approximate(5, 1e-6), purpose="secret plans")
    for _ in range(2):
        sir = PrivateSIR(epsilon=1.0, bounds="search", ledger=ledger).fit(*frame(500))
    back = load_model(save_model(sir, tmp_path / "m.json"))
    assert len(sir.ledger_) == 2 * len(back.ledger_)
    assert back.ledger_.budget == Budget.approximate(1.0, 1e-6)
    assert "secret plans" not in (tmp_path / "m.json").read_text()
    assert standalone(sir).ledger_.entries == back.ledger_.entries


def test_only_a_fitted_private_estimator_is_saved(tmp_path):
    stranger = type("PrivateLDA", (PrivateSIR,), {})()  # not ours, whatever its name
    with pytest.raises(InputError, match=r"holds one of PrivateSIR, .*, not a PrivateLDA"):
        save_model(stranger, tmp_path / "m.json")
    with pytest.raises(InputError, match=r"holds one of PrivateSIR, .*, not a SIR"):
        save_model(SIR(), tmp_path / "m.json")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(PrivateSIR(), tmp_path / "m.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "not a model file"),
        ('{"format": "sfumato-model/4"}', "unknown version"),
        ('{"format": 1}', "not a model file"),
        ("[" * 200_000, "not valid JSON"),
        ('{"a": 1, "a": 2}', "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": ' + "9" * 10_000 + "}", "not valid JSON"),
    ],
)
def test_what_is_no_model_is_refused(text, words, tmp_path):
    assert words in refused(text, tmp_path)


def test_a_huge_file_a_directory_and_bytes_are_refused(tmp_path):
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(2**27)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (huge, tmp_path, binary, tmp_path / "absent.json"):
        with pytest.raises(InputError, match=r"^model: "):
            load_model(path)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("estimator", "os.system", "estimator must be one of 'PrivateSIR', "),
        ("inputs.n_features", 4, "feature_names must be 4 different names"),
        ("inputs.n_features", True, "inputs.n_features must be a whole number"),
        ("inputs.feature_names", ["a", "a", "b"], "different names"),
        ("inputs.columns", ["x", "y", "z"], "columns"),
        ("inputs.second", {}, "inputs.second.n_features must be present"),
        ("parameters.epsilon", "1", "parameters.epsilon must be a finite number"),
        ("parameters.epsilon", -1, "parameters must be valid (epsilon must be"),
        ("parameters.method", "magic", "parameters.method must be one of"),
        ("parameters.n_directions", 9, "parameters.n_directions"),
        ("parameters.extra", 1, "parameters.extra must be absent"),
        ("parameters.classes", [{}], "parameters.classes[0]"),
        ("parameters.random_state", -1, "random_state"),
        ("released.directions", [[1, 2, 3, 4]], "released.directions[0] must be a list of 3"),
        ("released.directions", [], "released.directions must be a list of one or more"),
        ("released.directions", [[1, 2, 1e999]], "not valid JSON"),
        ("released.directions", [[1, 2, 10**400]], "released.directions[0][2] must be a finite number"),
        ("released.directions", [[1, 1, 0]], "released.directions must be rows of length one"),
        ("released.scale", [1, 0, 1], "released.scale must be positive"),
        ("released.mean", [0, 0, None], "released.mean[2] must be a finite number"),
        ("released.bounds", {"lower": 1, "upper": 0}, "released.bounds must be valid"),
        ("released.choice.n_directions", 0, "n_directions must be 1"),
        ("released.choice.n_directions", 10**9, "n_directions"),
        ("released.eigenvalues", [0.5] * 9, "released.eigenvalues"),
        ("released.picture.response_edges", [0, 0], "increasing"),
        ("released.picture.counts", [[1]], "released.picture must be framed"),
        ("ledger.budget", {"epsilon": 1, "delta": None, "rho": 1}, "ledger.budget must be valid"),
        ("ledger.relation", "swap", "ledger.relation must be one of"),
        ("ledger.entries", {}, "ledger.entries must be a list"),
        ("ledger.entries.0.event", {"mu": 1}, "ledger.entries[0].event.mechanism must be one of"),
        ("ledger.entries.0.event", {"mechanism": "Gaussian", "mu": -1}, "ledger.entries[0].event must be valid"),
        ("ledger.entries.1.noise_std", "x" * 10_000, "ledger.entries[1].noise_std must be a finite number"),
    ],
)
def test_a_wrong_field_is_refused_by_its_place(place, value, words, content, tmp_path):
    *way, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    node = content
    for step in way:
        node = node[step]
    node[last] = value
    assert words in refused(content, tmp_path)


def test_files_of_the_first_version_load_as_they_did(tmp_path):
    old = load_model(GOLDEN / "sfumato-model-1.json")
    inputs = load_inputs(GOLDEN / "sfumato-model-1.json")
    assert type(old) is PrivateSIR and old.picture_ is not None
    np.testing.assert_allclose(old.directions_, [[-0.89582431, 0.43745107, -0.07832862]], atol=1e-8)
    assert inputs.response == "los" and inputs.columns == Columns(
        ("age", "weight", "ward"), {"ward": ("north", "west")}
    )
    new = load_model(save_model(old, tmp_path / "m.json", response="los", columns=inputs.columns))
    assert build_document(new) == build_document(old)


SECOND = {
    "dp-sir": (research.DPSIR, {"calibration": "tight", "batches": "full"}),
    "dp-sini": (research.DPSIni, {"calibration": "paper", "max_features": 2}),
    "flow-lda": (research.RayleighFlowLDA, {"calibration": "paper"}),
    "pca": (PrivatePCA, {"method": "auto"}),
}


@pytest.mark.parametrize("name", SECOND)
def test_files_of_the_second_version_load_as_the_estimators_that_their_methods_have_become(name, tmp_path):
    path, (kind, parameters) = GOLDEN / f"sfumato-model-2-{name}.json", SECOND[name]
    old, written = load_model(path), json.loads(path.read_text())
    assert type(old) is kind and parameters.items() <= old.get_params().items()
    np.testing.assert_array_equal(old.directions_, written["released"]["directions"])
    assert old.ledger_.guarantee == written["ledger"]["guarantee"]
    assert repr(build_document(load_model(save_model(old, tmp_path / "m.json")))) == repr(build_document(old))
    if "calibration" in written["parameters"]:
        wrong = written | {"parameters": written["parameters"] | {"calibration": "loose"}}
        assert "parameters.calibration must be one of 'tight', 'paper'" in refused(wrong, tmp_path)


@pytest.mark.parametrize("name", ["PrivatePCA", "os.system", None])
def test_a_file_of_the_first_version_holds_a_private_sir_only(name, tmp_path):
    content = json.loads((GOLDEN / "sfumato-model-1.json").read_text())
    assert "estimator must be one of 'PrivateSIR'" in refused(content | {"estimator": name}, tmp_path)
    assert "must be an object" in refused(content | {"parameters": 3}, tmp_path)


def test_a_missing_field_is_named(content, tmp_path):
    del content["released"]["scale"]
    assert "released.scale must be present" in refused(content, tmp_path)


def test_pretty_is_json():
    value = {"a": [1.5, None, True], "b": {"c": [[1], [2]], "d": {}}, "e": 'quote " é'}
    assert json.loads(format_json(value)) == value
