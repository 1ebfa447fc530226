"""PrivateNormalScores: features as normal scores, by private histograms, before any other private fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, GivenBounds
from sfumato.errors import InputError
from sfumato.methods.about import Attack
from sfumato.methods.base import Spending, insists_on_search, known_of, open_session
from sfumato.methods.explanation import Explanation
from sfumato.methods.inputs import fit_source, transform_array
from sfumato.privacy.asking import Asking, drive
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.sources import ResponseKind, Source
from sfumato.steps.location import Located, Locating, Location
from sfumato.typing import FloatArray

LEAST = 5e-4
"""Part of the records at either end that is not told apart: scores end at 3.29."""


@dataclass(frozen=True, slots=True)
class ScoresTask:
    """What is public about a fit: the whole budget is for the search."""

    n_features: int
    n_records: int | None
    bounds: Location

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds))

    def prospect(self) -> None:
        """There is nothing to forecast."""

    def run(self) -> Asking[Located]:
        return Locating(self.bounds).run(self.n_features, self.n_records)


@dataclass(eq=False, repr=False)
class PrivateNormalScores(OneToOneFeatureMixin, TransformerMixin, Spending):
    """Features as normal scores, without revealing any one record: heavy tails and skewed scales become tame.

    A private fit cuts what lies far out, and so does not see what heavy tails tell. Here each feature becomes about
    ``q(F(x))``, with q the quantiles of a normal variable. F, the distribution of the feature, is read off the private
    histograms by which bounds are found: its middle, how far records are from it, in octaves, and, where the middle is
    zero, how many are on either side. What follows explains y by *scores*: directions are about these.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the scores alone: what follows in a pipeline has its own. A common ledger, or `account`, adds up.
    bounds : mapping, list, Bounds, "search" or None
        What is known of the features, as in `PrivateSIR`; it makes the search cheaper. Columns of true and false, and
        those of which the bounds say everything, stay as they are but for their unit.
    relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`.

    Attributes
    ----------
    distributions_ : Distributions or None
        How features lie around their middles, as released.
    bounds_ : Bounds
        Of the scores, for whatever follows: from -3.3 to 3.3.
    ledger_ : Ledger

    Notes
    -----
    What is asked are the four histograms of `sfumato.steps.location`, whose sensitivities are proved there: a record
    adds one to one bin for each feature. Scores are a function of one record and of these releases, so that a private
    fit on scores is an adaptive composition of both.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sfumato import Bounds, PrivateNormalScores, PrivateSIR
    >>> rng = np.random.default_rng(0)
    >>> x = np.exp(2.0 * rng.normal(size=(20_000, 3)))  # laboratory values: their logarithms are normal
    >>> y = np.log(x[:, 0] / x[:, 1]) + rng.normal(size=20_000)
    >>> scores = PrivateNormalScores(epsilon=0.2)
    >>> both = make_pipeline(scores, PrivateSIR(epsilon=0.8, n_directions=1, bounds=Bounds(-3.3, 3.3))).fit(x, y)
    >>> bool(abs(np.corrcoef(both.transform(x)[:, 0], np.log(x[:, 0] / x[:, 1]))[0, 1]) > 0.95)
    True
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: GivenBounds = None

    @classmethod
    def attacks(cls, known: dict[str, Any]) -> Iterator[Attack]:
        """The fits that are attacked, of a given budget and relation."""
        told = {name: known[name] for name in ("epsilon", "delta", "relation")}
        yield Attack("PrivateNormalScores", cls(**told, bounds="search"))
        some = {0: (-1, 1), 1: "search", 2: "search"}
        yield Attack("PrivateNormalScores, some bounds", cls(**told, bounds=some), replay_only=True)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find middles and distances of the features (array, dataframe or Arrow table); y is ignored."""
        session = open_session(self, X, None, groups)
        task = self._task(session.source.n_features, session.n_records)
        located = drive(task.run(), session.open(task))
        self.distributions_ = None if located.reading is None else located.reading.distributions()
        self._unit = located.grid
        self.bounds_, self.ledger_ = Bounds(-3.3, 3.3), session.ledger
        return self

    def explain(self, n_samples: int, n_features: int) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        return self._explain(n_samples, n_features, self._task)

    def transform(self, X: Any) -> FloatArray:
        """Scores of records. They are the records' own values: keep them with the data."""
        check_is_fitted(self)
        x, seen = transform_array(self, X), self.distributions_
        with np.errstate(over="ignore"):
            scores = (x - self._unit.centre) / self._unit.half_width
            for row in range(0 if seen is None else len(seen.columns)):
                assert seen is not None
                j = seen.columns[row]
                part = seen.at(row, x[:, j] - seen.middle[row])
                scores[:, j] = ndtri(np.clip(part, LEAST, 1.0 - LEAST))
        return np.asarray(np.clip(scores, self.bounds_.lower, self.bounds_.upper))

    def _task(self, n_features: int, n_records: int | None) -> ScoresTask:
        known = known_of(self, n_features).with_binary(getattr(self, "_binary", ()))
        if not known.asked.size:
            raise InputError("bounds: they say all there is to know of every feature; fit on the features themselves.")
        return ScoresTask(n_features, n_records, Location(known, 1.0, insists_on_search(known, self.bounds)))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        return fit_source(self, X, None, None, response_kind, unit)
