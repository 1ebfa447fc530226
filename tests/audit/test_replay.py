"""A neighbour's fit with the same releases shows nothing new. The long version is benchmarks/replay.py."""

import inspect
import sys
import warnings

import numpy as np
import pytest

import sfumato
import sfumato.research
from sfumato import Bounds, LabelPrivateSIR, PrivatePCA
from sfumato.audit import replay
from sfumato.audit.controls import broken_fits
from sfumato.audit.hostile import Hostile, Table, forges
from sfumato.audit.replays import NEIGHBOURS, federations, replay_markdown, runs, subjects, ways
from sfumato.audit.tape import fingerprint
from sfumato.local import Survey, ThresholdRandomiser
from sfumato.local.waves import run_survey
from sfumato.privacy.noise import SeededNoise

ROWS = {(run.name, run.relation, run.way): run for run in runs()}
ARRAYS = [key for key in ROWS if key[2] in ("array", "sites")]
PEOPLE = [[run for run in ROWS.values() if run.people and (run.name, run.relation) == key[:2]] for key in ARRAYS]
OTHERS = [way for way in ways() if way != "array"]
SUBJECTS = [(name, relation) for relation in ("replace", "add-remove") for name in subjects(relation)]
X = np.random.default_rng(0).uniform(-0.9, 0.9, (20, 3))
NEIGHBOUR = np.vstack([X[:-1], [[1.7e308, -1.0, 5e-324]]])
KNOWN = {"n_directions": 1, "bounds": Bounds(-1, 1), "method": "one-shot", "random_state": 0}


def private_estimators():
    exported = [getattr(home, name) for home in (sfumato, sfumato.research) for name in home.__all__]
    classes = [each for each in exported if inspect.isclass(each) and hasattr(each, "fit")]
    return [each for each in classes if "epsilon" in inspect.signature(each).parameters]


@pytest.mark.parametrize("kind", private_estimators(), ids=lambda kind: kind.__name__)
def test_every_private_estimator_is_replayed_with_every_method_and_relation(kind):
    parameters = inspect.signature(kind).parameters
    methods = sys.modules[kind.__module__].METHODS if "method" in parameters else ()
    for relation in ("replace", "add-remove") if "relation" in parameters else ("replace",):
        replayed = [each.estimator for each in subjects(relation).values() if type(each.estimator) is kind]
        assert replayed, f"{kind.__name__}.about names no attack"
        assert {*methods} - {"auto"} <= {getattr(estimator, "method", "") for estimator in replayed}


@pytest.mark.parametrize("key", ARRAYS, ids=", ".join)
def test_a_fit_shows_nothing_but_its_releases(key, tmp_path):
    """An honest tape, and one of five kinds of forged ones."""
    honest = 2 * (ARRAYS.index(key) % 15)
    for group in (honest, honest + 1):
        for found in ROWS[key].pairs(1, 0, tmp_path, first=NEIGHBOURS * group):
            assert found.findings == () and not found.refused and found.questions > 0


@pytest.mark.parametrize(("name", "relation"), SUBJECTS, ids=", ".join)
def test_whatever_the_records_come_in(name, relation, tmp_path):
    place = SUBJECTS.index((name, relation))
    way = OTHERS[place % len(OTHERS)]
    for found in ROWS[name, relation, way].pairs(1, 0, tmp_path, first=NEIGHBOURS * place):
        assert found.findings == () and not found.refused and found.questions > 0


@pytest.mark.parametrize("place", range(len(ARRAYS)), ids=lambda place: ", ".join(ARRAYS[place]))
def test_all_rows_of_a_person_show_nothing_but_their_releases(place, tmp_path):
    """In one of the ways in which each fit can be told of persons, with an honest or a forged tape."""
    wanted = [run for run in PEOPLE[place] if run.at_sites == (ARRAYS[place][2] == "sites")]
    for found in wanted[place % len(wanted)].pairs(1, 0, tmp_path, first=NEIGHBOURS * place):
        assert found.findings == () and not found.refused and found.questions > 0


def test_every_fit_is_told_of_persons_by_ids_and_by_promise():
    for key, every in zip(ARRAYS, PEOPLE, strict=True):
        told = {str(run.people) for run in every if run.way.startswith(key[2])}
        assert {"2 rows of a person", "10 rows of a person", "2 rows of a person, vouched for"} <= told
    sources = {run.way.removesuffix(", 2 rows of a person") for every in PEOPLE for run in every}
    assert {*ways(), "sites"} <= sources


@pytest.mark.parametrize("control", broken_fits(), ids=lambda control: control.name)
def test_a_fit_that_breaks_its_promise_is_caught(control):
    assert control.caught()


def _attribute(fitted, x):
    fitted.sign_ = -0.0 if x.max() > 1e300 else 0.0


def _warning(fitted, x):
    warnings.warn(f"largest value {x.max():.1g}", UserWarning, stacklevel=1)


def _error(fitted, x):
    raise ValueError(f"cannot handle {x.max()}")


@pytest.mark.parametrize(
    ("tell", "wanted"),
    [
        (_attribute, "attribute sign_ differs"),
        (_warning, "warnings differ"),
        (_error, "error differs"),
    ],
)
def test_nothing_beside_the_releases_may_tell_the_neighbours_apart(tell, wanted):
    def fit(x):
        fitted = PrivatePCA(**KNOWN).fit(x)
        tell(fitted, x)
        return fitted

    assert replay(fit, X, NEIGHBOUR).findings == (wanted,)
    assert replay(fit, X, X.copy()).passed


def test_a_device_that_looks_at_other_people_is_caught():
    """Labels measured from their mean before they are randomised: one label moves everybody's answer."""
    y = np.linspace(-1.0, 1.0, len(X))

    def centred(labels):
        return LabelPrivateSIR(1.0, 1, edges=[0.0], random_state=0).fit(X, labels - labels.mean())

    found = replay(centred, y, np.append(y[:-1], 40.0))
    assert found.findings == ("devices: more answers moved than one person gives",)


def test_a_table_that_is_refused_before_anything_is_asked_proves_nothing():
    missing = np.vstack([X[:-1], [[np.nan, 0.0, 0.0]]])
    found = replay(PrivatePCA(**KNOWN).fit, X, missing)
    assert found.refused and found.raised.startswith("InputError")


def test_a_mistake_in_the_call_is_not_taken_for_a_pass():
    with pytest.raises(TypeError, match="no_such_option"):
        replay(lambda x: PrivatePCA(**KNOWN).fit(x, no_such_option=1), X, NEIGHBOUR)


def test_under_the_other_relation_the_same_pair_moves_further_than_stated():
    fit = PrivatePCA(**KNOWN, relation="add-remove").fit
    assert replay(fit, X, X[:-1]).passed
    replaced = replay(fit, np.vstack([X, [[0.9, 0.0, 0.0]]]), np.vstack([X, [[-1.0, -1.0, 1.0]]]))
    assert any("times as far as stated" in finding for finding in replaced.findings)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_hostile_pairs_are_neighbours(relation):
    rng, hostile = np.random.default_rng(0), Hostile(2, (0.0, 1.0), relation)
    for _ in range(200):
        d = hostile.table(rng)
        d_prime = hostile.neighbour(rng, d)
        one, other = ({(*row, value) for row, value in zip(_bits(t.x), t.y, strict=True)} for t in (d, d_prime))
        assert len(one - other) <= 1 and len(other - one) <= 1
        assert len(d.y) - len(d_prime.y) in ((0,) if relation == "replace" else (-1, 1))
        assert np.isfinite(d.x).all() and np.isfinite(d_prime.x).all()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_hostile_neighbours_differ_in_one_person(relation):
    rng, hostile = np.random.default_rng(0), Hostile(2, (0.0, 1.0), relation, rows=4)
    others = []
    for _ in range(200):
        d = hostile.table(rng)
        d_prime = hostile.neighbour(rng, d)
        one, other = (_rows_of_people(table) for table in (d, d_prime))
        differing = {person for person in {*one, *other} if one.get(person) != other.get(person)}
        assert len(differing) <= 1 and max(len(rows) for each in (one, other) for rows in each.values()) <= 4
        assert relation == "replace" or {*one} != {*other}
        others += [len(one.get(person, ())) - len(other.get(person, ())) for person in differing]
    assert min(others) < 0 < max(others)  # with more rows, and with fewer


def _rows_of_people(table):
    """The rows of each person, in their order."""
    rows = [(*row, value) for row, value in zip(_bits(table.x), table.y, strict=True)]
    return {person: [rows[i] for i in np.flatnonzero(table.ids == person)] for person in table.ids.tolist()}


def _bits(x):
    return [tuple(row.view(np.int64).tolist()) for row in x]


def test_a_private_label_leaves_the_features_alone():
    rng, hostile = np.random.default_rng(0), Hostile(2, (0.0, 1.0), "replace", private="label")
    for _ in range(50):
        d = hostile.table(rng)
        assert _bits(d.x) == _bits(hostile.neighbour(rng, d).x)


def test_people_who_answer_for_several_rows_send_as_many_answers():
    rng, hostile = np.random.default_rng(0), Hostile(2, (0.0, 1.0), "replace", private="answer", rows=4)
    for _ in range(50):
        d = hostile.table(rng)
        assert (d.ids == hostile.neighbour(rng, d).ids).all()


def test_half_of_the_tapes_are_honest():
    names = [forge.name for forge in forges(0)]
    assert names[::2] == ["honest"] * 5 and len({*names[1::2]} - {"honest"}) == 5


def test_an_attribute_of_an_unknown_kind_is_not_passed_over():
    def fit(x):
        fitted = PrivatePCA(**KNOWN).fit(x)
        fitted.kept_ = object()
        return fitted

    with pytest.raises(TypeError, match="no fingerprint"):
        replay(fit, X, NEIGHBOUR)


def test_fingerprints_tell_every_bit():
    values = [0, 0.0, -0.0, False, "0", None, np.float32(0), np.zeros(1), np.zeros((1, 1)), [0.0], (0.0,), {"a": 0.0}]
    values += [range(3), range(1, 3), (0, 1, 2)]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(Table(X, (1.0,), X[:, 0])) == fingerprint(Table(X.copy(), (1.0,), X[:, 0].copy()))


def test_the_table_names_what_was_found():
    run = ROWS["PrivatePCA one-shot", "replace", "array"]
    assert "| PrivatePCA one-shot | replace | array | 2 |" in replay_markdown([run.row(2, 0)])
    assert set(federations("replace")) <= {run.name for run in runs(", sites")}


@pytest.mark.parametrize("leaks", [False, True])
def test_a_survey_whose_later_questions_look_at_true_labels_is_caught(leaks):
    """The honest one asks the neighbour the same questions; the other does not, and is found out by that."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2))
    y = x[:, 0] + 0.1 * rng.standard_normal(40)
    survey = Survey.plan(1.0, 40, 3, "key", edges=[-1.0, 0.0, 1.0])
    first = int(np.flatnonzero(survey.wave_of(range(40)) == 0)[0])

    def fit(values):
        class Peeping(Survey):
            def ask(self, wave, x, asked, answers):
                form = Survey.ask(self, wave, x, asked, answers)
                return ThresholdRandomiser(self.epsilon, form.thresholds + (values.mean() if wave else 0.0))

        chosen = (Peeping if leaks else Survey)(survey.epsilon, survey.shares, 0, survey.key, survey.edges)
        answers, rows = run_survey(chosen, x, values, SeededNoise(1))
        return LabelPrivateSIR(n_directions=1).fit(x[rows], answers)

    found = replay(fit, y, np.where(np.arange(40) == first, 50.0, y))
    assert found.questions == 3
    assert found.findings == (("devices: the question differs",) if leaks else ())
