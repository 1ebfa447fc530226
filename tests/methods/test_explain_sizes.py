"""A plan is made from two numbers, and says so if it does not get them."""

import pytest

from sfumato import Bounds, InputError, PrivatePCA, PrivateSAVE, PrivateSIR, PrivateSparseSIR
from sfumato.research import DPSIR, RayleighFlowPCA


@pytest.mark.parametrize("estimator", [PrivateSIR(), PrivateSparseSIR(relation="add-remove"), PrivatePCA()])
@pytest.mark.parametrize(("n", "p"), [(None, 3), (0, 3), (2.5, 3), (100, None), (100, True)])
def test_a_plan_needs_sizes_of_which_a_guess_will_do(estimator, n, p):
    with pytest.raises(InputError, match=r"must be a positive integer, .*a guess will do"):
        estimator.explain(n, p)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateSAVE(classes=[0, 1]),
        RayleighFlowPCA(),
        DPSIR(n_directions=1, bounds=Bounds(-1, 1)),
    ],
)
def test_no_loss_is_foreseen_where_there_is_no_theory_and_explain_says_so(estimator):
    explanation = estimator.explain(20_000, 10)
    assert "Expected distance" not in str(explanation) and "No loss is foreseen" in str(explanation)
    with pytest.raises(InputError, match="no forecast"):
        explanation.forecast()
    assert "Expected distance" in str(PrivateSIR(method="one-shot").explain(20_000, 10))
