"""Fits that protect persons: `groups` and `rows_per_person`."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import sfumato
import sfumato as sf
from sfumato.errors import BudgetError, InputError
from sfumato.federated import simulate
from sfumato.forecast import forecast
from sfumato.local import SliceRandomiser
from sfumato.methods import FAMILY, added, load
from sfumato.model import load_model, save_model
from sfumato.privacy.ledger import FileLedger, Ledger
from sfumato.privacy.unit import RECORD, Unit, neighbours, unit_from
from sfumato.research import DPSIR

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
BOX = sf.Bounds(-1.0, 1.0)
SECRET = "patient-4711"


@pytest.fixture(scope="module")
def panel():
    """A hundred people of very different numbers of rows, in mixed order."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(100), rng.integers(1, 9, 100)))
    x = rng.uniform(-1, 1, (len(ids), 4))
    return x, x[:, 0] + 0.1 * rng.standard_normal(len(ids)), np.array([f"{SECRET}-{i}" for i in ids])


def copy_of(estimator, **changed):
    return clone(estimator).set_params(**changed)


def first(ids, rows):
    seen = dict.fromkeys(ids, 0)
    found = []
    for i, one in enumerate(ids):
        seen[one] += 1
        if seen[one] <= rows:
            found.append(i)
    return np.array(found)


ESTIMATORS = [
    sf.PrivateSIR(bounds=BOX, n_directions=1, method="descent"),
    DPSIR(bounds=BOX, n_directions=1),
    sf.PrivateSIR(bounds=BOX, n_directions=1, picture=True),
    sf.PrivateSparseSIR(bounds=BOX, n_directions=1, max_features=2),
    sf.PrivateSAVE(bounds=BOX, n_directions=1),
    load(FAMILY["dr"])(bounds=BOX, n_directions=1),
    load(FAMILY["phd"])(bounds=BOX, n_directions=1),
    sf.PrivatePCA(bounds=BOX),
    sf.PrivateSparsePCA(bounds=BOX, max_features=2),
    sf.PrivateLDA(bounds=BOX, n_directions=1, classes=["low", "high"]),
    sf.PrivateCCA(bounds=BOX, y_bounds=BOX, n_directions=1),
    sf.PrivateMultiSIR(bounds=BOX, n_directions=1),
    sf.PrivateCensoredSIR(bounds=BOX, n_directions=1),
]


def fitted(estimator, x, y, **also):
    match estimator:
        case sf.PrivateLDA():
            return estimator.fit(x, np.where(y > 0, "high", "low"), **also)
        case sf.PrivateCCA() | sf.PrivateMultiSIR() | sf.PrivateCensoredSIR():
            return estimator.fit(x[:, :2], x[:, 2:], **also)
    return estimator.fit(x, y, **also)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__} {getattr(e, 'method', '')}")
def test_counting_rows_is_declaring_them_on_the_rows_that_count(estimator, relation, panel):
    x, y, ids = panel
    rows = first(ids, 3)
    estimator = copy_of(estimator, relation=relation, rows_per_person=3, random_state=5)
    counted = fitted(copy_of(estimator), x, y, groups=ids)
    vouched = fitted(copy_of(estimator), x[rows], y[rows])
    assert (counted.directions_ == vouched.directions_).all()
    assert counted.n_records_ is None
    assert {entry.unit for entry in counted.ledger_} == {Unit(3)}
    assert {entry.unit for entry in vouched.ledger_} == {Unit(3, declared=True)}
    assert [entry.noise_std for entry in counted.ledger_] == [entry.noise_std for entry in vouched.ledger_]


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_noise_grows_as_the_number_of_rows(panel, relation):
    x, y, ids = panel
    noise = {}
    for rows in (1, 4):
        sir = sf.PrivateSIR(bounds=BOX, n_directions=1, method="one-shot", relation=relation, rows_per_person=rows)
        noise[rows] = [entry.noise_std for entry in sir.fit(x, y, groups=ids).ledger_]
    # the first releases ask the same; later ones depend on what those told
    assert noise[4][0] == pytest.approx(4 * noise[1][0])
    if relation == "add-remove":  # where records are replaced their number is public, and the plan another one
        record = sf.PrivateSIR(bounds=BOX, n_directions=1, method="one-shot", relation=relation).fit(x, y)
        assert noise[1][0] == pytest.approx(record.ledger_.entries[0].noise_std)


def test_ids_without_a_number_let_one_row_each_count(panel):
    x, y, ids = panel
    sir = sf.PrivateSIR(bounds=BOX, random_state=1).fit(x, y, groups=ids)
    same = sf.PrivateSIR(bounds=BOX, random_state=1, rows_per_person=1).fit(x, y, groups=ids)
    assert (sir.directions_ == same.directions_).all() and sir.ledger_.unit == Unit(1)


def test_a_scanned_table_and_groups_are_the_same_fit(panel):
    x, y, ids = panel
    table = pa.table({"who": ids, "y": y, **{f"x{j}": x[:, j] for j in range(4)}})
    make = {"bounds": BOX, "random_state": 1, "rows_per_person": 2}
    scanned = sf.PrivateSIR(**make).fit(sf.scan(table, response="y", person="who"))
    assert (scanned.directions_ == sf.PrivateSIR(**make).fit(x, y, groups=ids).directions_).all()
    assert list(scanned.feature_names_in_) == ["x0", "x1", "x2", "x3"]


def test_the_guarantee_names_the_person(panel):
    x, y, ids = panel
    said = sf.PrivateSIR(bounds=BOX, rows_per_person=5).fit(x, y, groups=ids).ledger_.guarantee
    assert said.endswith("with respect to replacing any one person with all their rows (at most 5 of them count).")
    vouched = sf.PrivateSIR(bounds=BOX, rows_per_person=5, relation="add-remove").fit(x, y).ledger_.guarantee
    assert "adding or removing any one person with all their rows, if nobody has more than 5 of them" in vouched
    assert "declared, not checked" in vouched
    assert "any one record" in sf.PrivateSIR(bounds=BOX).fit(x, y).ledger_.guarantee


def test_no_id_leaves_a_fit(panel, tmp_path):
    x, y, ids = panel
    sir = sf.PrivateSIR(bounds=BOX, rows_per_person=2).fit(x, y, groups=ids)
    path = save_model(sir, tmp_path / "model.json")
    shown = pickle.dumps(sir) + path.read_bytes() + str(vars(sir)).encode()
    shown += sir.report(tmp_path / "report.html").read_bytes()
    assert SECRET.encode() not in shown


def test_a_model_file_keeps_whom_it_protects(panel, tmp_path):
    x, y, ids = panel
    for also in ({"groups": ids}, {}):
        sir = sf.PrivateSIR(bounds=BOX, rows_per_person=2).fit(x, y, **also)
        again = load_model(save_model(sir, tmp_path / "model.json"))
        assert again.ledger_.guarantee == sir.ledger_.guarantee and again.rows_per_person == 2
        assert again.ledger_.entries == sir.ledger_.entries


def test_a_report_names_the_person(panel, tmp_path):
    x, y, ids = panel
    path = sf.PrivateSIR(bounds=BOX, rows_per_person=2).fit(x, y, groups=ids).report(tmp_path / "report.html")
    page = path.read_text()
    assert "any one person with all their rows" in page and "replace one person with up to 2 rows" in page


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2", 10_001])
def test_a_number_of_rows_that_is_none_is_refused(panel, rows):
    x, y, ids = panel
    with pytest.raises(InputError, match="rows_per_person must be a whole number"):
        sf.PrivateSIR(bounds=BOX, rows_per_person=rows).fit(x, y, groups=ids)


def test_bad_ids_are_refused_before_anything_is_spent(panel, tmp_path):
    x, y, ids = panel
    missing = ids.astype(object)
    missing[3] = None
    path = tmp_path / "ledger.jsonl"
    FileLedger(path, sf.Budget.approximate(3.0, 1e-6), protects="person")
    sir = sf.PrivateSIR(bounds=BOX, ledger=path)
    for wrong, words in ((missing, "groups has missing ids"), (ids[1:], "groups and x must have the same number")):
        with pytest.raises(InputError, match=words) as caught:
            sir.fit(x, y, groups=wrong)
        assert SECRET not in str(caught.value)
    with pytest.raises(InputError, match="groups must be left out when x is a scanned source"):
        sir.fit(sf.scan(pa.table({"y": y, "a": x[:, 0]}), response="y"), groups=ids)
    assert len(FileLedger(path).runs()) == 0


def test_too_many_rows_for_a_budget_are_refused_before_anything_is_spent(panel):
    x, y, ids = panel
    with pytest.raises(BudgetError, match="let fewer than 10000 rows of a person count"):
        sf.PrivateSIR(epsilon=0.1, bounds=BOX, rows_per_person=10_000).fit(x, y, groups=ids)


def test_the_papers_printed_noise_is_for_records_only(panel):
    x, y, ids = panel
    with pytest.raises(InputError, match="rows_per_person"):
        DPSIR(bounds=BOX, n_directions=1, calibration="paper").fit(x, y, groups=ids)


def test_a_ledger_takes_either_persons_or_records(panel, tmp_path):
    x, y, ids = panel
    cap = sf.Budget.approximate(5.0, 1e-6)
    records, persons = tmp_path / "records.jsonl", tmp_path / "persons.jsonl"
    FileLedger(records, cap)
    FileLedger(persons, cap, protects="person")
    with pytest.raises(InputError, match="protects any one record, this fit any one person"):
        sf.PrivateSIR(bounds=BOX, ledger=records).fit(x, y, groups=ids)
    with pytest.raises(InputError, match="protects any one person, this fit any one record"):
        sf.PrivateSIR(bounds=BOX, ledger=persons).fit(x, y)
    sf.PrivateSIR(bounds=BOX, ledger=records).fit(x, y)
    for rows in (1, 4):
        sf.PrivateSIR(bounds=BOX, ledger=str(persons), rows_per_person=rows).fit(x, y, groups=ids)
    shared = FileLedger(persons)
    assert {entry.unit for entry in shared} == {Unit(1), Unit(4)}
    assert "replacing any one person with all their rows (at most 4 of them count)" in shared.guarantee
    assert "any one record" in FileLedger(records).guarantee
    with pytest.raises(InputError, match="protects any one person, not a record"):
        FileLedger(persons, cap, protects="record")


def test_a_ledger_in_memory_is_for_one_number_of_rows(panel):
    x, y, ids = panel
    ledger = Ledger(sf.Budget.approximate(5.0, 1e-6), "replace", unit=Unit(2))
    sf.PrivateSIR(bounds=BOX, ledger=ledger, rows_per_person=2).fit(x, y, groups=ids)
    with pytest.raises(InputError, match="the ledger was opened for 'person, 2 rows'"):
        sf.PrivateSIR(bounds=BOX, ledger=ledger, rows_per_person=3).fit(x, y, groups=ids)


def test_a_release_of_another_unit_is_not_written(panel, tmp_path):
    from sfumato.privacy.events import Gaussian
    from sfumato.privacy.ledger import Entry

    entry = Entry("purpose", "query", Gaussian(0.1), 1.0, 10.0, 1.0, "replace")
    for ledger in (
        Ledger(sf.Budget.zcdp(1.0), "replace", unit=Unit(2)),
        FileLedger(tmp_path / "persons.jsonl", sf.Budget.zcdp(1.0), protects="person"),
    ):
        with pytest.raises(BudgetError, match="protects any one person, the release any one record"):
            ledger.record(entry)


@pytest.mark.parametrize("unit", [RECORD, Unit(1), Unit(17, declared=True)])
def test_a_unit_is_read_as_it_is_written(unit):
    assert unit_from(str(unit)) == unit


@pytest.mark.parametrize("text", ["person", "person, 0 rows", "person, 1000000 rows", "records", ""])
def test_other_words_are_no_unit(text):
    with pytest.raises(ValueError, match="not a unit"):
        unit_from(text)


def test_what_was_declared_binds_all_releases():
    said = neighbours("replace", [Unit(9), Unit(5, declared=True), Unit(7, declared=True)])
    assert "nobody has more than 5" in said


def test_a_plan_says_what_several_rows_cost():
    one, five = (sf.PrivateSIR(bounds=BOX, rows_per_person=rows).explain(20_000, 5) for rows in (1, 5))
    assert one.plan == five.plan and five.rows()[0][-1] == f"5 x {one.rows()[0][-1]}"
    assert five.forecast().loss > 1.2 * one.forecast().loss
    assert "of a person with up to 5 rows" in str(five)


def test_sites_count_the_rows_of_their_own_people(panel):
    x, y, ids = panel
    half = len(ids) // 2
    sites = [(x[:half], y[:half], ids[:half]), (x[half:], y[half:], ids[half:])]
    estimator = sf.PrivateSIR(bounds=BOX, rows_per_person=2, random_state=3)
    apart = simulate(estimator, sites)
    rows = [first(ids[:half], 2), half + first(ids[half:], 2)]
    vouched = simulate(estimator, [(x[mine], y[mine]) for mine in rows])
    assert (apart.directions_ == vouched.directions_).all()
    assert all("any one person" in ledger.guarantee or ledger.rehearsal for ledger in apart.ledgers_.values())
    assert {entry.unit for ledger in apart.ledgers_.values() for entry in ledger} == {Unit(2)}
    shared = simulate(estimator, sites, trust="secure-aggregation")
    plain = simulate(copy_of(estimator, rows_per_person=1), sites, trust="secure-aggregation")
    assert shared.ledger_.entries[0].noise_std == pytest.approx(2 * plain.ledger_.entries[0].noise_std)
    with pytest.raises(InputError, match="some say whose row is whose"):
        simulate(estimator, [sites[0], (x[half:], y[half:])])


DEVICES = [
    sf.LabelPrivateSIR(2.0, 1),
    sf.LabelPrivateIHT(2.0),
    sf.LabelPrivateIHT(2.0, 1e-6, mechanism="gaussian"),
    sf.LocalSIR(2.0, bounds=BOX),
]


@pytest.mark.parametrize("estimator", DEVICES, ids=lambda e: type(e).__name__)
def test_all_answers_of_a_person_cost_the_budget_together(estimator, panel, tmp_path):
    x, y, ids = panel
    estimator = copy_of(estimator, rows_per_person=4).fit(x, y, groups=ids)
    one = estimator.ledger_.entries[0].event
    assert estimator.ledger_.total() == pytest.approx(2.0)
    alone = copy_of(estimator, rows_per_person=None).fit(x, y).ledger_.entries[0].event
    ratio = one.mu / alone.mu if hasattr(one, "mu") else one.epsilon / alone.epsilon
    assert ratio == pytest.approx(0.5 if hasattr(one, "mu") else 0.25)
    assert "up to 4 answers together of each person, for" in estimator.ledger_.guarantee
    page = estimator.report(tmp_path / "report.html").read_text()
    assert "gives up to 4 answers and pays for all of them" in page


def test_answers_that_have_left_are_only_added_up(panel):
    x, y, ids = panel
    answers = SliceRandomiser(0.5, edges=[0.0]).randomize(y)
    ledger = sf.LabelPrivateSIR(n_directions=1, rows_per_person=8).fit(x, answers).ledger_
    assert ledger.total() == pytest.approx(4.0) and "(declared, not checked)" in ledger.guarantee
    with pytest.raises(InputError, match="groups must be left out when y was randomised"):
        sf.LabelPrivateSIR(n_directions=1).fit(x, answers, groups=ids)


def test_every_private_estimator_takes_persons():
    kinds = [getattr(sfumato, name) for name in sfumato.__all__ if name.startswith(("Private", "Label", "Local"))]
    private = [kind for kind in kinds if hasattr(kind, "fit")]
    assert len(private) == 15
    papers = [load(home) for home in added().values()]
    assert len(papers) == 11
    assert all("rows_per_person" in kind().get_params() for kind in private + papers)


def test_dividing_mu_leaves_the_person_with_the_budget_and_dividing_epsilon_does_not():
    from sfumato.privacy.accounting import gdp_epsilon

    whole = sf.Budget.approximate(1.0, 1e-6)
    row = whole.per_row(5)
    assert gdp_epsilon(5 * row.mu(), 1e-6) == pytest.approx(1.0)
    assert gdp_epsilon(5 * sf.Budget.approximate(0.2, 1e-6).mu(), 1e-6) == pytest.approx(1.12, abs=0.005)
    assert whole.per_row(1) == whole
    with pytest.raises(BudgetError, match="rows must be a whole number"):
        whole.per_row(0)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_table_without_rows_is_answered_where_persons_are_protected(relation):
    """A person may have no row, so an empty table is a neighbour of one with a single person."""
    none, known = (np.empty((0, 3)), np.empty(0)), {"relation": relation, "n_directions": 1, "bounds": BOX}
    columns = {name: pa.array([], pa.float64()) for name in ("a", "b", "c", "y", "who")}
    scanned = sf.scan(pa.table(columns), response="y", person="who")
    for fitted in (
        sf.PrivateSIR(**known).fit(*none, groups=[]),
        sf.PrivateSIR(**known, rows_per_person=2).fit(*none),
        sf.PrivateSIR(**known).fit(scanned),
        simulate(sf.PrivateSIR(**known), [(*none, []), (*none, [])]),
    ):
        assert np.isfinite(fitted.directions_).all() and fitted.n_features_in_ == 3
    if relation == "replace":
        with pytest.raises(InputError, match="minimum of 1"):
            sf.PrivateSIR(**known).fit(*none)


@pytest.mark.judged
def test_a_forecast_has_the_noise_of_a_persons_rows_and_does_not_know_their_number():
    plain, whole = (
        sf.PrivateSIR(bounds=BOX, n_directions=1, rows_per_person=rows).explain(5_000, 4) for rows in (None, 5)
    )
    population = plain.prospect.population
    for fit in (plain.fit, whole.fit):
        seen = forecast(fit, plain.budget, 5_000, population, relation="add-remove", rows=5)
        assert seen == forecast(fit, plain.budget, 5_000, population, relation="add-remove", noises=25.0)
    assert whole.fit.n_records is None
    assert whole.forecast().loss > 1.5 * plain.forecast().loss
    assert whole.records_for(0.1) > 3.0 * plain.records_for(0.1)  # five times the noise, beside the sample
    for name, curve in whole.compare([5_000]).losses.items():
        assert name == "without privacy" or curve[0] > plain.compare([5_000]).losses[name][0]
    person, record = whole.alternatives()["descent"], whole.prospect.plans(whole.budget)["descent"]
    assert record.lines[0].rho / person.lines[0].rho == pytest.approx(25.0)


def test_a_text_file_says_whose_row_it_is_and_what_its_response_is(tmp_path):
    rows = "".join(f"{i % 7 + 1},{i / 50},{(i % 5) / 5},{i % 3}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("who,a,b,y\n" + rows + "007,0.1,0.2,2\n")
    source = sf.scan(tmp_path / "t.csv", response="y", response_kind="categorical", person="who")
    assert source.has_people and source.response.categories is not None and source.feature_names == ("a", "b")
    assert source.first_rows(5).count() == 5 * 7
    fitted = sf.PrivateSIR(bounds=BOX, n_directions=1, rows_per_person=2).fit(source)
    assert "at most 2 of them count" in fitted.ledger_.guarantee
