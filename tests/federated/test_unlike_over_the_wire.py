"""Sites of unequal size, and sites whose size is private: over the wire as in simulation."""

import numpy as np
import pytest
from tests.federated.conftest import Consortium

from sfumato import Bounds, InputError, PrivateSIR, PrivateSparseSIR
from sfumato.federated import SitesLostError, simulate
from sfumato.federated.coordinator import fit_remote
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he


class Unlike(Consortium):
    """Sites of 1,500, 1,000 and 500 records, whose ledgers may be for another relation."""

    def __init__(self, folder, relation, p=5):
        sample = he("V", n=3_000, p=p, random_state=0)
        rows = np.split(np.arange(3_000), [1_500, 2_500])
        parts = {f"h{i}": (sample.x[some].copy(), sample.y[some].copy()) for i, some in enumerate(rows)}
        super().__init__(folder, parts, relation=relation)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PrivateSIR, {"method": "descent"}),
        (PrivateSIR, {"method": "one-shot"}),
        (PrivateSIR, {"method": "descent", "picture": True}),
        (PrivateSparseSIR, {"max_features": 30}),  # two at a time, which the terms must say
    ],
)
def test_weighted_sums_are_the_same_to_the_last_bit(tmp_path, relation, kind, options):
    consortium = Unlike(tmp_path, relation)
    options = {**options, "n_directions": 1, "bounds": Bounds(-6, 6), "relation": relation}
    found = fit_remote(kind(1.0, 1e-5, **options), consortium, tuple(consortium.parts))
    here = simulate(kind(1.0, 1e-5, **options, random_state=7), consortium.parts)
    np.testing.assert_array_equal(found.directions_, here.directions_)
    told = [facts.n_records for facts in found.sites_.values()]
    assert told == ([1_500, 1_000, 500] if relation == "replace" else [None] * 3)


def test_a_plan_for_another_relation_than_the_ledgers_is_refused(tmp_path):
    consortium = Unlike(tmp_path, "add-remove")
    estimator = PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6))
    with pytest.raises(InputError, match="must be public under relation='replace'"):
        fit_remote(estimator, consortium, tuple(consortium.parts))


def test_sites_with_too_few_records_are_not_asked(tmp_path):
    consortium = Unlike(tmp_path, "replace")
    estimator = PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot")
    found = fit_remote(estimator, consortium, tuple(consortium.parts), minimum=2, least=501)
    assert found.left_out_ == {"h2": "has 500 records, fewer than the 501 asked for."}
    assert [FileLedger(consortium.ledger(name)).spent() > 0.0 for name in consortium.parts] == [True, True, False]
    with pytest.raises(SitesLostError, match="fewer than the 1501 asked for"):
        fit_remote(estimator, consortium, tuple(consortium.parts), least=1_501)
