"""Which method to use: the one with the least expected loss, from public numbers alone."""

from functools import lru_cache

from sfumato.iterate.descent import Schedule
from sfumato.planner.forecast import private_loss
from sfumato.planner.law import WIDEST, Law
from sfumato.planner.population import Population
from sfumato.privacy.plan import Plan
from sfumato.typing import Relation

POINTS = 400
MARGIN = 0.9
"""The first plan is kept unless another is expected to lose a tenth less: forecasts are not more precise."""
GOOD = 0.15
"""An expected distance below which nothing else is tried: the signal stands out, and the descent's noise is less."""
GOOD_LAW = 0.05
"""The same for components, whose forecasts are closer: methods differ by less than `MARGIN` there."""
_SIGNAL = 0.5


@lru_cache(maxsize=256)
def recommend(
    plans: tuple[tuple[str, Plan], ...],
    n: int | None,
    n_features: int,
    n_directions: int = 1,
    relation: Relation = "replace",
    schedule: Schedule | None = None,
    law: Law | None = None,
) -> str:
    """The name of the plan to use on n records, for directions that explain half of the response (or variance).

    A matter of milliseconds, and remembered. With few records or a tiny budget a descent has nothing to descend on,
    and one question with all of the budget does better; from a few thousand records on the first plan, the descent,
    is at least as good.

    Parameters
    ----------
    plans : tuple of (name, calibrated plan)
        With the noise that the fit will see: of a federation, `Plan.merged`. The first is the usual one.
    n : int or None
        None where the number of records is private: it must not choose. Then the first plan, because it has the
        smaller loss in the geometric mean over n, equally spaced in logarithm, or (components) one within a tenth:
        where the other is better, at the few n between seeing nothing and seeing well, it gains no more than what
        it loses at every larger n (tested over p and epsilon). Whoever can name a public guess of n asks `explain`
        and sets the method.
    n_features, n_directions : int
    relation : {"replace", "add-remove"}
    schedule : Schedule, optional
        Of the descent, if it is not the usual one.
    law : Law, optional
        Typical records, if not those of a response explained by an index.

    Examples
    --------
    >>> from sfumato import PrivateSIR
    >>> few, many = (PrivateSIR(epsilon=1.0).explain(n, 5) for n in (300, 30_000))
    >>> few.recommended, many.recommended
    ('one-shot', 'descent')
    """
    first, usual = plans[0]
    if n is None or not n_directions < n_features <= WIDEST or n < 10:
        return first
    population = law or Population.typical(n_features, n_directions, _SIGNAL, points=POINTS)
    good = GOOD if law is None else GOOD_LAW
    if private_loss(usual, n, population, relation, 3, schedule=schedule) < good:
        return first
    draws = 6 if n_features <= 30 else 3
    losses = {name: private_loss(plan, n, population, relation, draws, schedule=schedule) for name, plan in plans}
    best = min(losses, key=lambda name: losses[name])
    return best if losses[best] < MARGIN * losses[first] else first
