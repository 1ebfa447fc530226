"""Sites that protect persons, reached as a deployment reaches them."""

import json

import numpy as np
import pytest

from sfumato import PrivateSIR, PrivateSparseSIR
from sfumato.federated import SitesLostError, simulate
from sfumato.federated.coordinator import fit_remote
from sfumato.federated.site import handle
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.unit import Unit
from sfumato.statistics.wire import dump_json

SITES = ("h0", "h1", "h2")


@pytest.mark.parametrize("kind", [PrivateSIR, PrivateSparseSIR])
def test_over_the_wire_and_in_simulation_persons_get_the_same_fit(people, estimator, kind):
    estimator = kind(**estimator.get_params()).set_params(rows_per_person=2)
    remote = fit_remote(estimator, people, SITES)
    here = simulate(kind(**estimator.get_params() | {"random_state": people.seed}), people.parts)
    np.testing.assert_array_equal(remote.directions_, here.directions_)
    assert all(facts.n_records is None for facts in remote.sites_.values())
    noise = [[entry.noise_std for entry in fit.ledger_] for fit in (remote, here)]
    assert noise[0] == pytest.approx(noise[1], rel=1e-6)
    for ledger in (remote.ledger_, *(FileLedger(people.ledger(name)) for name in SITES)):
        assert {entry.unit for entry in ledger} == {Unit(2)}


def test_sites_whose_ledgers_protect_persons_take_no_plan_for_records(people, estimator):
    with pytest.raises(Exception, match="number of records must be public"):
        fit_remote(estimator, people, SITES)
    reply = handle(people.site("h0"), dump_json({"ask": "accept", "terms": terms()}))[0]
    assert "protects any one record, the site's ledger a person" in json.loads(reply)["refused"]
    assert all(FileLedger(people.ledger(name)).spent() == 0.0 for name in SITES)


def test_sites_that_do_not_know_their_people_take_no_plan_for_persons(consortium, estimator):
    with pytest.raises(SitesLostError, match="the site's ledger a record"):
        fit_remote(estimator.set_params(rows_per_person=2), consortium, SITES)
    assert all(FileLedger(consortium.ledger(name)).spent() == 0.0 for name in SITES)


def test_a_site_without_ids_does_not_take_the_coordinators_word(people):
    people.parts = {name: part[:2] for name, part in people.parts.items()}
    reply = handle(people.site("h0"), dump_json({"ask": "accept", "terms": terms(rows_per_person=2)}))[0]
    assert "does not say whose row is whose" in json.loads(reply)["refused"]


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2", 10**9, [2]])
def test_a_plan_with_an_impossible_number_of_rows_is_refused(people, rows):
    reply = handle(people.site("h0"), dump_json({"ask": "accept", "terms": terms(rows_per_person=rows)}))[0]
    assert "rows_per_person must be a whole number" in json.loads(reply)["refused"]


def terms(**changes):
    return {
        "run": "ab" * 8,
        "relation": "replace",
        "budget": {"epsilon": 1.0, "delta": 1e-5, "rho": None},
        "trust": {"kind": "sites", "sites": 3, "honest": 1},
        "shares": [["response magnitude", 0.5], ["magnitude", 0.5]],
    } | changes
