"""Adding the releases of sites."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.release import Release
from sfumato.settings.federated import FederatedCurator, LineNoise, SitesLostError, trust_of
from sfumato.statistics.histograms import OctaveHistograms


class Answers:
    """Sites with fixed answers."""

    def __init__(self, sizes, values):
        self.sizes, self._values = sizes, values

    def ask(self, query, name):
        return {site: Release(np.array([value]), np.array([3.0])) for site, value in self._values.items()}


QUERY = OctaveHistograms(1)


def test_sums_add_and_noise_adds_in_quadrature():
    total = FederatedCurator(Answers({"a": 5, "b": 5}, {"a": 1.0, "b": 2.0})).answer(QUERY, "x")
    assert total.value == [3.0] and total.noise_std == [np.hypot(3.0, 3.0)]


def test_a_site_that_is_missing_is_made_up_for_by_public_sizes():
    total = FederatedCurator(Answers({"a": 30, "b": 10}, {"a": 6.0})).answer(QUERY, "x")
    assert total.value == [8.0] and total.noise_std == [4.0]


def test_where_sizes_are_private_sites_count_alike():
    total = FederatedCurator(Answers({"a": None, "b": None}, {"a": 6.0})).answer(QUERY, "x")
    assert total.value == [12.0]


def test_too_few_sites_end_the_run_with_one_sentence():
    with pytest.raises(SitesLostError, match="only 1 of 2 sites answered 'x', 2 are needed"):
        FederatedCurator(Answers({"a": 1, "b": 1}, {"a": 1.0}), 2).answer(QUERY, "x")


def test_by_default_no_single_other_site_can_undo_shared_noise():
    assert trust_of("secure-aggregation", 5).share == 4
    assert trust_of("secure-aggregation", 2).share == 1
    assert trust_of("sites", 5).share == 1


@pytest.mark.parametrize("honest", [0, 6, 1.5, True])
def test_a_number_of_honest_sites_that_cannot_be_is_refused(honest):
    with pytest.raises(InputError, match="honest must be"):
        trust_of("secure-aggregation", 5, honest)


def test_seeded_noise_depends_on_seed_site_and_line_alone():
    def words(seed, site, line):
        noise = LineNoise(seed, site)
        noise.words(3)
        noise.begin(line)
        return noise.words(4).tolist()

    assert words(1, "a", "step 1") == words(1, "a", "step 1")
    others = [words(2, "a", "step 1"), words(1, "b", "step 1"), words(1, "a", "step 2")]
    assert all(other != words(1, "a", "step 1") for other in others)
