"""Every member of the family, and whoever joins it: a page, attacks, a report, a model file.

Its fit at the command line is in tests/cli/test_family.py, which lists the options of each.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import sfumato
from sfumato.audit.fits import list_attacks
from sfumato.errors import PrivacyWarning
from sfumato.methods import DEVICES, FAMILY, added, find_class, load
from sfumato.model import load_model, save_model
from sfumato.report.build import build_document
from sfumato.report.html import render

DOCS = Path(__file__).parents[2] / "docs"
MEMBERS = {**FAMILY, **added()}
ATTACKS = {relation: list(list_attacks(1.0, 1e-6, relation)) for relation in ("replace", "add-remove")}
RECORDS = 120


def attacks_on(make, relation="replace"):
    return [attack for attack in ATTACKS[relation] if type(attack.estimator) is make]


def fit(attack):
    """Its estimator, fitted to records of the kind it is attacked with."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, (RECORDS, attack.n_features))
    y = x[:, 0] + 0.1 * rng.normal(size=RECORDS)
    if attack.responses is not None:
        y = np.array(attack.responses, dtype=object)[rng.integers(len(attack.responses), size=RECORDS)]
        y = y.astype(float) if isinstance(attack.responses[0], float) else y
    half = attack.n_features // 2
    data = (x[:, :half], x[:, half:]) if attack.two_tables else (x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return clone(attack.estimator).set_params(random_state=1).fit(*data)


@pytest.mark.parametrize("home", [*MEMBERS.values(), *DEVICES])
def test_a_member_has_a_title_and_a_page_that_names_it(home):
    make = load(home)
    page = DOCS / make.about.page
    assert make.about.title and make.__name__ in page.read_text(encoding="utf-8"), f"{page} does not name it"


@pytest.mark.parametrize("home", FAMILY.values())
def test_a_member_of_our_own_is_a_public_name(home):
    make = load(home)
    assert getattr(sfumato, make.__name__) is make and find_class(make.__name__) is make


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_is_attacked_under_both_relations(name):
    make = load(MEMBERS[name])
    for relation in ATTACKS:
        attacked = [attack.estimator.relation for attack in attacks_on(make, relation) if not attack.replay_only]
        assert set(attacked) == {relation}


def test_no_two_attacks_have_a_name_in_common():
    names = [attack.name for attack in ATTACKS["replace"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_fitted_member_has_a_report_in_its_own_words(name):
    fitted = fit(attacks_on(load(MEMBERS[name]))[0])
    document = build_document(fitted, forecasts=False)
    assert document.title == fitted.about.title and document.unit == fitted.about.unit
    page = render(document)
    assert document.title in page and fitted.about.method(fitted) in page


@pytest.mark.parametrize("name", MEMBERS)
def test_a_fitted_member_comes_back_from_its_model_file(name, tmp_path):
    fitted = fit(attacks_on(load(MEMBERS[name]))[0])
    back = load_model(save_model(fitted, tmp_path / "model.json"))
    assert type(back) is type(fitted)
    assert np.array_equal(back.directions_, fitted.directions_)
    assert save_model(back, tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


def test_what_no_member_is_called_is_found_nowhere():
    assert find_class("KMeans") is None and find_class(None) is None
