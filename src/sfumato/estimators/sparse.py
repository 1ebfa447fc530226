"""PrivateSparseSIR: sliced inverse regression when there are more features than records, and few of them matter."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from sfumato.bounds import GivenBounds
from sfumato.errors import InputError
from sfumato.estimators.base import known_of
from sfumato.estimators.parameters import chosen_method, directions_of, share_of
from sfumato.estimators.session import open_session
from sfumato.estimators.sir import PICTURE_SHARE, PrivateSIR
from sfumato.estimators.sparse_pipeline import SparseTask, run_sparse, spread_columns, usual_picks
from sfumato.iterate.screening import Screen
from sfumato.privacy.asking import drive
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.parameters import budget_of
from sfumato.records import Response
from sfumato.sources import ResponseKind
from sfumato.typing import FloatArray

METHODS = ("auto", "screen")


class PrivateSparseSIR(PrivateSIR):
    """Directions of x that explain y when x has thousands of features, without revealing any one record.

    The features that move with y are picked privately by the signs of x alone, how many of them matter is found
    from their released scores, and the directions come from a descent on those few columns. The cost of picking
    grows with the logarithm of the number of features only.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, known without looking at the data. A sign is that of the difference from the *middle*
        of the bounds: choose it near the typical value. None: signs are those of the features themselves, and location
        and scale are found privately, on the picked features only.
    method : {"auto", "screen"}
        "auto" is "screen"; `explain` forecasts its loss. With few features and many records `PrivateSIR` needs no
        screening. The papers' own methods are in `sfumato.research`.
    max_features : int or "auto"
        Features to pick; those of them that stand out of the noise are kept. "auto" chooses from the number of
        records (if public), of features and the budget: 4 to 8.
    relation, rows_per_person, rho, classes, picture, ledger, random_state
        As in `PrivateSIR`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, zero outside `support_`.
    support_ : ndarray of int
        Columns kept, in increasing order.
    screen_ : Screen or None
        Columns picked (best first), their released scores and the threshold they had to pass.
    standard_errors_, privacy_errors_, loadings_, loadings_errors_, eigenvalues_, choice_, verdict_
        As in `PrivateSIR`, for the features kept; which ones are is not part of the errors. There are no p-values: the
        features were kept for what they have to do with y.
    mean_, scale_, bounds_, ledger_, picture_
        As in `PrivateSIR`; of features that were not kept nothing was learnt, so `mean_` and `scale_` are middle and
        half width of their bounds (0 and 1 without bounds).

    Examples
    --------
    >>> from sfumato import PrivateSparseSIR, Bounds, subspace_distance
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=2000, p=1500, high_dimensional=True, random_state=0)
    >>> sir = PrivateSparseSIR(epsilon=1.0, delta=1e-4, n_directions=1, bounds=Bounds(-1.5, 1.5))
    >>> sir = sir.fit(sample.x, sample.y)
    >>> bool(subspace_distance(sir.directions_, sample.directions) < 0.5), set(sir.support_) >= {0, 1}
    (True, True)
    >>> sir.ledger_.total() <= 1.0
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_directions: int | str = "auto",
        bounds: GivenBounds = None,
        method: str = "auto",
        *,
        max_features: int | str = "auto",
        relation: str = "replace",
        rows_per_person: int | None = None,
        rho: float | None = None,
        classes: Sequence[Any] | None = None,
        picture: bool | float = False,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            n_directions,
            bounds,
            method,
            relation=relation,
            rows_per_person=rows_per_person,
            rho=rho,
            classes=classes,
            picture=picture,
            ledger=ledger,
            random_state=random_state,
        )
        self.max_features = max_features

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, response_kind: ResponseKind | None = None) -> Self:
        """Find the features that matter and the directions; parameters as in `PrivateSIR.fit`."""
        session = open_session(self, X, y, groups, response_kind=response_kind)
        task = self._sparse_task(session.source.n_features, session.n_records, session.source.response)
        outcome, screened = drive(run_sparse(task), session.open(task))
        self.screen_: Screen | None = screened
        self.support_ = screened.kept
        self._keep(outcome, session.ledger)
        return self

    def _wide(self, rows: FloatArray) -> FloatArray:
        """Zero for features that were not kept."""
        return spread_columns(np.zeros((len(rows), len(self.mean_))), self.support_, rows)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Any:
        return self._sparse_task(n_features, n_records, response)

    def _sparse_task(self, n_features: int, n_records: int | None, response: Response) -> SparseTask:
        """What is public about this fit, every parameter checked."""
        known = known_of(self, n_features).with_binary(getattr(self, "_binary", ()))
        chosen_method(self, METHODS)
        directions = directions_of(self.n_directions, n_features)
        return SparseTask(
            n_features,
            n_records,
            response,
            directions,
            known,
            self._picks(n_features, n_records, directions),
            share_of(self.picture, PICTURE_SHARE),
        )

    def _picks(self, n_features: int, n_records: int | None, n_directions: int | None) -> int:
        if self.max_features == "auto":
            budget = budget_of(self.epsilon, self.delta, self.rho)
            return usual_picks(n_records, n_features, budget, n_directions)
        given = self.max_features
        if not isinstance(given, Integral) or isinstance(given, bool) or int(given) < (n_directions or 1):
            least = n_directions or 1
            raise InputError(f"max_features must be 'auto' or an integer of at least {least}, got {given!r}.")
        return min(int(given), n_features)
