"""From a picture to a prediction: how y, or the share of a class, moves along the first direction.

The picture is counts of records by score and response that were paid for. What a new record's response is likely to
be follows from them: every column of the picture is a noisy histogram of y for records of about that score, and
neighbouring columns are much alike. This is post-processing: nothing more is asked of the data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InputError
from sfumato.steps.noisy_histograms import nearest_shares
from sfumato.steps.picture import GROUPS, Picture
from sfumato.typing import FloatArray

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Curve:
    """A function of a score: its value at some places, and the standard error of each."""

    places: FloatArray
    values: FloatArray
    errors: FloatArray

    def at(self, scores: FloatArray) -> FloatArray:
        """Values in between, linearly; constant beyond the ends."""
        return np.interp(scores, self.places, self.values)


PENALTIES = np.logspace(-2.0, 7.0, 37)
"""Precisions of second differences, beside that of the values."""


def smooth_curve(
    places: FloatArray, sums: FloatArray, sizes: FloatArray, variances: FloatArray, spread: float
) -> Curve:
    """The smooth curve d of which ``sums`` are noisy values of ``sizes d``, with the given variances.

    Before anything is seen d has the variance `spread` everywhere, and its second differences are independent normals
    of a variance that is chosen where the sums are most likely; d is then their posterior mean. A column of size zero
    says nothing, and is filled in by its neighbours with an error to match.

    >>> places = np.linspace(-1, 1, 9)
    >>> curve = smooth_curve(places, 100.0 * places, np.full(9, 100.0), np.full(9, 1.0), 1.0)
    >>> bool(np.allclose(curve.values, places, atol=1e-3)), bool((curve.errors < 0.01).all())
    (True, True)
    """
    precision = sizes**2 / np.maximum(variances, 1e-300)
    target = sizes * sums / np.maximum(variances, 1e-300)
    if not np.isfinite(precision + target).all():
        return Curve(places, np.zeros(len(places)), np.full(len(places), np.sqrt(spread)))
    rough = np.diff(np.eye(len(places)), 2, axis=0)
    flat, bent = np.eye(len(places)) / spread, rough.T @ rough / spread
    priors = [flat + weight * bent for weight in PENALTIES]
    best = max(priors, key=lambda prior: _likelihood(prior, precision, target))
    inverse = np.linalg.inv(np.diag(precision) + best)
    return Curve(places, inverse @ target, np.sqrt(np.maximum(np.diag(inverse), 0.0)))


def _likelihood(prior: FloatArray, precision: FloatArray, target: FloatArray) -> float:
    """Log-likelihood of the sums, up to what does not depend on the prior."""
    posterior = np.diag(precision) + prior
    volume = float(np.linalg.slogdet(prior)[1]) - float(np.linalg.slogdet(posterior)[1])
    return 0.5 * (volume + float(target @ np.linalg.solve(posterior, target)))


MANY = 2.0 / GROUPS
"""Part of the records that makes a group one of which it is not known where in it they are."""
FAR = 5.0
"""How far from the mean of all the mean at a score may well be, in standard deviations of y."""


def mean_curve(picture: Picture, values: FloatArray) -> Curve:
    """E(value of the response's group | score): one value for each group of the picture.

    In a column of N records the sum of ``value - mean`` over its counts has the noise of the counts, known, and the
    sampling variance of N values.
    """
    total = max(float(picture.counts.sum()), 1.0)
    shares = nearest_shares(picture.counts.sum(axis=0), total)
    mean = float(shares @ values)
    centred = values - mean
    sizes = nearest_shares(picture.counts.sum(axis=1), total) * total
    noise = picture.noise_std**2 * float(centred @ centred)
    spread = max(float(shares @ centred**2), 1e-12 * float(centred @ centred), 1e-300)
    variances = noise + sizes * spread
    places = (picture.direction_edges[:-1] + picture.direction_edges[1:]) / 2.0
    curve = smooth_curve(places, picture.counts @ centred, sizes, variances, FAR**2 * spread)
    return Curve(places, mean + curve.values, curve.errors)


def share_curves(picture: Picture) -> FloatArray:
    """P(group | score) at the middle of each column (columns, groups): rows of probabilities."""
    columns = [mean_curve(picture, group).values for group in np.eye(picture.counts.shape[1])]
    shares = np.maximum(np.column_stack(columns), 1e-6)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def quantiles(picture: Picture, scores: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of a number y given the score (scores, levels).

    The distribution function at the cut between two groups is a curve of its own; it is made to grow with the cut, and
    y is spread evenly within a group. Of a group that holds many records it is not known where in it they are, perhaps
    all at one value: a quantile there is the end of the group that is farther from the median. Where nothing is known
    of the size of y all are infinite.
    """
    assert picture.response_cuts is not None
    if unsized(picture):
        return np.tile(np.where(levels < 0.5, -np.inf, np.inf), (len(scores), 1))
    groups, cuts = picture.counts.shape[1], picture.response_cuts
    below = np.array(
        [mean_curve(picture, (np.arange(groups) <= g).astype(float)).at(scores) for g in range(groups - 1)]
    )
    below = np.vstack([np.zeros(len(scores)), below.reshape(groups - 1, len(scores)), np.ones(len(scores))])
    below = np.maximum.accumulate(np.clip(below, 0.0, 1.0), axis=0) + 1e-12 * np.arange(groups + 1)[:, None]
    found = np.array([np.interp(levels, column, cuts) for column in below.T]).reshape(len(scores), len(levels))
    group = np.array([np.searchsorted(column[1:-1], levels) for column in below.T], dtype=np.int64)
    group = group.reshape(found.shape)
    return np.where(_heavy(picture)[group], cuts[group + (levels >= 0.5)], found)


def _heavy(picture: Picture) -> NDArray[np.bool_]:
    """Which groups hold many records."""
    shares = nearest_shares(picture.counts.sum(axis=0), max(float(picture.counts.sum()), 1.0))
    return np.asarray(shares > MANY)


def unsized(picture: Picture) -> bool:
    """Whether records were too few to show how large numbers of y are: there is one cut alone."""
    cuts = picture.response_cuts
    return cuts is not None and cuts[0] == cuts[-1]


def _pictured(estimator: Any) -> bool:
    """Whether there is or will be a picture of a response whose values have names."""
    picture = getattr(estimator, "picture_", None)
    if picture is None and (hasattr(estimator, "picture_") or not estimator.picture):
        raise InputError("picture: no picture was bought, and nothing to predict with; fit again with picture=True.")
    if picture is None:
        return True
    if picture.response_values is None:
        raise InputError("picture: this model was saved before pictures could predict; fit again with picture=True.")
    if not picture.is_ordered and estimator.classes is None:
        raise InputError("classes must be listed to predict them; without it their names are not known.")
    return True


def _numeric(estimator: Any) -> bool:
    return _pictured(estimator) and estimator.classes is None


def _named(estimator: Any) -> bool:
    return _pictured(estimator) and estimator.classes is not None


needs_picture: Callable[[F], F] = available_if(_pictured)
needs_numbers: Callable[[F], F] = available_if(_numeric)
needs_classes: Callable[[F], F] = available_if(_named)


class Predicting:
    """`predict` and its kin, for estimators that may have bought a picture of their first direction."""

    classes: Any
    picture_: Picture | None
    directions_: FloatArray
    mean_: FloatArray
    _features: Callable[[Any], FloatArray]

    @needs_picture
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y to expect of each record, or its likeliest class, by the picture of the first direction.

        Parameters
        ----------
        X : array, dataframe or Arrow table
        return_std : bool
            Whether to return, too, the standard error of that mean by sampling and privacy noise (numbers only),
            infinite where records are too few to show how large y is. How far single records are from it
            `predict_interval` tells.
        """
        picture = self._picture()
        if not picture.is_ordered:
            return np.asarray(self.classes)[self.predict_proba(X).argmax(axis=1)]
        assert picture.response_values is not None
        scores, curve = self._scores(X), mean_curve(picture, picture.response_values)
        found = curve.at(scores)
        if not return_std:
            return found
        known = np.interp(scores, curve.places, curve.errors)
        return found, np.full_like(known, np.inf) if unsized(picture) else known

    @needs_numbers
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Lower and upper end between which y of a record is expected to be with this probability: (n, 2).

        Where many records have one value, both ends count as between them. Ends are infinite where records are too few
        to show how large y is.
        """
        if not 0.0 < coverage < 1.0:
            raise InputError(f"coverage must be between 0 and 1, got {coverage!r}; 0.9 is usual.")
        picture, miss = self._picture(), (1.0 - coverage) / 2.0
        return quantiles(picture, self._scores(X), np.array([miss, 1.0 - miss]))

    @needs_classes
    def predict_proba(self, X: Any) -> FloatArray:
        """Shares of the classes to expect at each record's score: (n, classes), in the order of `classes`.

        A class that the picture does not show apart has the share zero.
        """
        picture, scores = self._picture(), self._scores(X)
        places, table = (picture.direction_edges[:-1] + picture.direction_edges[1:]) / 2.0, share_curves(picture)
        shares = np.zeros((len(scores), len(self.classes)))
        assert picture.response_values is not None
        for group, code in enumerate(picture.response_values.astype(np.int64)):
            if code < len(self.classes):
                shares[:, code] = np.interp(scores, places, table[:, group])
        return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))

    def _picture(self) -> Picture:
        check_is_fitted(self)
        assert self.picture_ is not None
        return self.picture_

    def _scores(self, X: Any) -> FloatArray:
        """Along the first direction, in its standard deviations."""
        scale = self._picture().score_scale
        return np.asarray((self._features(X) - self.mean_) @ self.directions_[0] / scale)
