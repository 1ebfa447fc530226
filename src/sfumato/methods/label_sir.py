"""LabelPrivateSIR: x is public, y never leaves its owner's device unrandomised."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial import hermite_e
from scipy.stats import chi2

from sfumato.errors import InputError, PrivacyWarning
from sfumato.local.answers import LABEL_ONLY, Answers, LocalLedger, Randomiser, entry_of
from sfumato.local.location import find_edges, split
from sfumato.local.randomisers import (
    MOST_SLICES,
    SliceRandomiser,
    ThresholdRandomiser,
    best_number_of_slices,
    epsilon_of,
    thresholds_of,
)
from sfumato.local.waves import Survey, fit_answers, run_survey
from sfumato.methods.about import About
from sfumato.methods.base import REHEARSAL, DeviceEstimator, Projecting
from sfumato.methods.inputs import device_unit, directions_of, first_rows, fit_source
from sfumato.methods.reference import SIR, whitener
from sfumato.privacy.noise import Noise
from sfumato.privacy.parameters import noise_of
from sfumato.privacy.unit import Unit
from sfumato.settings.central import one_blas_thread
from sfumato.typing import FloatArray, IntArray, is_whole

PROTECTS = f"the label of each person (its owner's own answer y alone); {LABEL_ONLY}"


@dataclass(eq=False, repr=False)
class LabelPrivateSIR(Projecting, DeviceEstimator):
    """Directions of public features x that explain a private label y.

    Each device reports its slice of y by randomised response (`sfumato.local.SliceRandomiser`); everything else is
    ordinary dimension reduction on public numbers. A randomised label depends on x only through y, so its
    directions are among the true ones: randomising costs precision, never bias.

    Parameters
    ----------
    epsilon : float
        Pure differential privacy of each person's answer. Each person answers once.
    n_directions : int or "auto"
        "auto" chooses by BIC, at most one less than the slices.
    n_slices : int or "auto"
        "auto": as many as keep most signal at this epsilon (2 up to epsilon 1.5, 3 or 4 at 3).
    edges : sequence of float, optional
        Public edges between slices. None: found from a pilot, people who answer a yes-or-no question instead.
    classes : sequence, optional
        Public classes of y, instead of slices of a number; anything else counts as the last of them.
    pilot : float
        Share of people asked where y lies when `edges` is None (never more than 4000).
    n_active : int, "auto" or None
        Sparse version: keep this many features by their marginal scores ("auto": those that chance does not
        reach). None keeps all. Free: the labels are already randomised.
    refine : bool
        Sharpen SIR's directions by least squares over a polynomial of the index. Free, for the same reason.
    waves : int, optional
        Ask in so many waves, each person in one of them: what the next people are asked, "is your y at least t?",
        follows from the answers so far (`sfumato.local.Survey`, with the proof). For a number that rises with one
        index of x: there is one direction, by maximum likelihood of all answers. `edges`, at least two, then say where
        y lies; None: half of the waves, a share `pilot` of the people, find out.
    rows_per_person : int, optional
        Protect persons with several rows: the first so many of each (``fit(..., groups=ids)``; 1 if not given) are
        answered for, at epsilon over their number each, so that all answers of a person together cost `epsilon`. With
        `Answers`, or without ids, it declares how many answers anyone gave.
    random_state : int, optional
        Seeded noise, for rehearsal only.

    Attributes
    ----------
    directions_, eigenvalues_, mean_ : ndarray
        Orthonormal rows in the units of x; part of the variance each explains, lies corrected for; centre.
    active_ : ndarray of int
        Features kept.
    form_ : SliceRandomiser or ThresholdRandomiser
        What the devices answered.
    ledger_ : LocalLedger
        ``ledger_.guarantee`` says exactly what is protected.

    Examples
    --------
    >>> from sfumato import LabelPrivateSIR, subspace_distance
    >>> from sfumato.local import SliceRandomiser
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=20_000, p=6, random_state=0)
    >>> answers = SliceRandomiser(epsilon=2.0, edges=[0.0]).randomize(sample.y)      # on the devices
    >>> sir = LabelPrivateSIR(n_directions=1).fit(sample.x, answers)                 # at the analyst's
    >>> bool(subspace_distance(sir.directions_, sample.directions) < 0.15)
    True
    >>> sir.ledger_.total()
    2.0
    >>> waves = LabelPrivateSIR(epsilon=2.0, n_directions=1, waves=4).fit(sample.x, sample.y)
    >>> bool(subspace_distance(waves.directions_, sample.directions) < 0.05), waves.ledger_.total()
    (True, 2.0)
    """

    epsilon: float = 1.0
    n_directions: int | str = "auto"
    _: KW_ONLY
    n_slices: int | str = "auto"
    edges: Sequence[float] | None = None
    classes: Sequence[Any] | None = None
    pilot: float = 0.1
    n_active: int | str | None = None
    refine: bool = True
    waves: int | None = None

    about: ClassVar[About] = About("Sliced inverse regression of randomised labels", "howto/label-privacy.md")

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array, dataframe, Arrow table, or Source
            Public features.
        y : Answers, array or series
            What the devices sent; or true labels, which are randomised first (a rehearsal of the whole protocol,
            or a custodian who acts for every device) and not looked at again.
        groups : array or series, optional
            Whose row it is; public, like x.
        """
        unit = device_unit(self, X, y, groups)
        if isinstance(y, Answers):
            x = fit_source(self, X, np.zeros(len(y)), None).pooled().x
            answers, rows, entries = y, np.arange(len(x)), (entry_of(y.form, _purpose(y.form)),)
        else:
            answers, x, rows, entries = self._randomise(X, y, groups, unit)
        if not isinstance(answers.form, SliceRandomiser | ThresholdRandomiser):
            raise InputError("y: these answers are numbers, not slices; use LabelPrivateIHT, or a SliceRandomiser.")
        self.form_: SliceRandomiser | ThresholdRandomiser = answers.form
        self.ledger_ = LocalLedger(entries, 0.0, PROTECTS, answers.rehearsal, unit)
        if isinstance(answers.form, ThresholdRandomiser):
            self._solve_waves(x[rows], answers)
        else:
            self._solve(x[rows], np.asarray(answers.values, dtype=np.int64), answers.form)
        return self

    def _randomise(
        self, X: Any, y: Any, groups: Any, unit: Unit
    ) -> tuple[Answers, FloatArray, IntArray, tuple[Any, ...]]:
        """What the devices would do with these labels."""
        noise, epsilon = noise_of(self.random_state), epsilon_of(epsilon_of(self.epsilon) / unit.factor)
        source = first_rows(fit_source(self, X, y, self.classes), groups, unit)
        if source.response.hashed:
            raise InputError("classes must be given for a response of names; list the possible ones.")
        records = source.pooled()
        x, values = records.x, records.y
        if noise.rehearsal:
            warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=3)
        rows = np.arange(len(x))
        if self.waves is not None:
            return self._in_waves(self.waves, x, np.asarray(values, dtype=np.float64), epsilon, noise)
        if self.classes is not None:
            codes = list(range(len(self.classes)))
            answers = SliceRandomiser(epsilon, classes=codes).randomize(values, noise)
            form = SliceRandomiser(epsilon, classes=self.classes)
            return replace(answers, form=form), x, rows, (entry_of(form, "class of y"),)
        form, rows, entries = self._form(np.asarray(values, dtype=np.float64), epsilon, noise)
        return form.randomize(values[rows], noise), x, rows, (entry_of(form, "slice of y"), *entries)

    def _in_waves(
        self, waves: int, x: FloatArray, y: FloatArray, epsilon: float, noise: Noise
    ) -> tuple[Answers, FloatArray, IntArray, tuple[Any, ...]]:
        """What devices answer in a survey. Its key is drawn and rows stand for ids: no label says who is asked when."""
        if self.classes is not None:
            raise InputError("classes must be left out with waves, which ask about a number; or leave out waves.")
        key = str(int(noise.words(1)[0]))
        survey = Survey.plan(epsilon, len(x), waves, key, pilot=self.pilot, edges=self.edges)
        self._check_one_direction(x.shape[1])
        answers, rows = run_survey(survey, x, y, noise)
        return answers, x, rows, (entry_of(answers.form, _purpose(answers.form)),)

    def _check_one_direction(self, n_features: int) -> None:
        if directions_of(self.n_directions, n_features) not in (None, 1):
            raise InputError("n_directions must be 1 with waves, which follow one index; or leave out waves.")
        if self.n_active is not None:
            raise InputError("n_active must be None with waves; leave features out before, or leave out waves.")

    def _form(self, y: FloatArray, epsilon: float, noise: Noise) -> tuple[SliceRandomiser, IntArray, tuple[Any, ...]]:
        if self.edges is not None:
            return SliceRandomiser(epsilon, self.edges), np.arange(len(y)), ()
        if not isinstance(self.pilot, Real) or not 0.0 < float(self.pilot) <= 0.5:
            raise InputError(f"pilot must be a share of the people up to 0.5, got {self.pilot!r}.")
        asked, rows = split(len(y), float(self.pilot), noise)
        edges = find_edges(y[asked], self._slices(epsilon), epsilon, noise)
        return SliceRandomiser(epsilon, edges), rows, (entry_of(ThresholdRandomiser(epsilon, [0.0]), "where y lies"),)

    def _slices(self, epsilon: float) -> int:
        if self.n_slices == "auto":
            wanted = self.n_directions if isinstance(self.n_directions, Integral) else 1
            # k slices show at most k - 1 directions; the last of several needs one slice to spare.
            return best_number_of_slices(epsilon, min(int(wanted) + (2 if wanted > 1 else 1), MOST_SLICES))
        if not is_whole(self.n_slices, 2, MOST_SLICES):
            raise InputError(f"n_slices must be 'auto' or an integer from 2 to {MOST_SLICES}, got {self.n_slices!r}.")
        return int(self.n_slices)

    def _solve_waves(self, x: FloatArray, answers: Answers) -> None:
        """The index that answers about thresholds show: public, like all that follows randomised labels."""
        self._check_one_direction(x.shape[1])
        found = fit_answers(x, answers)
        self.active_ = np.arange(x.shape[1])
        self.directions_, self.mean_ = found.direction[None, :], x.mean(axis=0)
        self.eigenvalues_ = np.array([found.explained(x, thresholds_of(answers).thresholds)])

    def _solve(self, x: FloatArray, codes: IntArray, form: SliceRandomiser) -> None:
        """Ordinary, public dimension reduction on randomised labels."""
        k = directions_of(self.n_directions, x.shape[1])
        self.active_ = self._screen(x, codes)
        kept = x[:, self.active_]
        sir = SIR("auto" if k is None else min(k, kept.shape[1]), MOST_SLICES).fit(kept, codes)
        basis = sir.directions_
        if self.refine:
            with one_blas_thread():
                basis = _refined(kept, codes, basis)
        self.directions_ = np.zeros((len(basis), x.shape[1]))
        self.directions_[:, self.active_] = basis
        self.mean_ = x.mean(axis=0)
        self.eigenvalues_ = _explained(kept, codes, basis, form)

    def _screen(self, x: FloatArray, codes: IntArray) -> IntArray:
        n, p = x.shape
        if self.n_active is None:
            return np.arange(p)
        labels = _indicators(codes)
        deviation = x - x.mean(axis=0)
        spread = np.sqrt(np.maximum((deviation**2).mean(axis=0), 1e-300))
        score = ((deviation / spread).T @ labels) ** 2 / n
        total = np.asarray(score.sum(axis=1))
        if self.n_active == "auto":
            least = 1 if self.n_directions == "auto" else int(self.n_directions)
            chance = float(chi2.isf(1.0 / p, max(labels.shape[1] - 1, 1)))  # one feature of p by chance
            count = max(least, min(int((total > chance).sum()), n // 10))
        elif is_whole(self.n_active, 1):
            count = int(self.n_active)
        else:
            raise InputError(f"n_active must be a positive integer, 'auto' or None, got {self.n_active!r}.")
        return np.sort(np.argsort(-total, kind="stable")[: min(count, p)])


def _purpose(form: Randomiser) -> str:
    return "y against a threshold" if isinstance(form, ThresholdRandomiser) else "slice of y"


def _indicators(codes: IntArray) -> FloatArray:
    """Centred indicators over the root of their shares: the columns whose regression on x is SIR."""
    _, place = np.unique(codes, return_inverse=True)
    share = np.bincount(place) / len(place)
    return np.asarray((np.eye(len(share))[place] - share) / np.sqrt(share))


def _explained(x: FloatArray, codes: IntArray, basis: FloatArray, form: SliceRandomiser) -> FloatArray:
    """Part of the variance along each direction that lies between the true slices.

    An answer is h with probability ``q_h = l + s p_h``: l the chance of each lie, s the shrinkage, p_h the share of
    slice h. About the mean of all, answers h sum to s times what slice h does, so the slice has mean ``q_h m'_h / (s
    p_h)`` where those who answer h have m'_h. What chance alone adds to the squares, ``q_h / n``, is taken off.
    """
    n, index = len(x), (x - x.mean(axis=0)) @ basis.T
    index = index / np.maximum(index.std(axis=0), 1e-300)
    told = np.bincount(codes, minlength=form.n_slices) / n
    sums = np.array([index[codes == h].sum(axis=0) for h in range(form.n_slices)]) / n
    lie = (1.0 - form.kept) / max(form.n_slices - 1, 1)
    true = np.maximum((told - lie) / form.shrinkage, 1.0 / n)[:, None]
    between = ((sums**2 - told[:, None] / n) / (form.shrinkage**2 * true)).sum(axis=0)
    return np.asarray(np.clip(between, 0.0, 1.0))


def _refined(x: FloatArray, codes: IntArray, basis: FloatArray) -> FloatArray:
    mean = x.mean(axis=0)
    deviation = x - mean
    W = whitener(deviation.T @ deviation / len(x), mean, len(x))
    start, _ = np.linalg.qr(np.linalg.lstsq(W, basis.T, rcond=None)[0])
    if len(np.unique(codes)) < 2:
        return basis
    q, _ = np.linalg.qr(W @ refine(deviation @ W, _indicators(codes), start))
    signs = np.where((q.T * basis).sum(axis=1) < 0, -1.0, 1.0)
    return np.asarray(q.T * signs[:, None])


DEGREES = {1: (3, 7), 2: (3, 5), 3: (3,)}
MOST_UNKNOWNS = 300
_FAR = 3.5
"""The index is cut here, in standard deviations: a polynomial must not chase its own tails."""


def refine(z: FloatArray, labels: FloatArray, start: FloatArray) -> FloatArray:
    """Orthonormal U (p, k), from a start with the same shape; the degree is chosen by BIC, "no change" included.

    Parameters
    ----------
    z : ndarray of shape (n, p)
        Whitened features.
    labels : ndarray of shape (n, h)
        Scaled, centred indicators of the (randomised) labels.
    start : ndarray of shape (p, k)
        Orthonormal columns, usually SIR's.
    """
    n, p = z.shape
    k, h = start.shape[1], labels.shape[1]
    if k not in DEGREES or p * k > MOST_UNKNOWNS or n < 20 * p * k:
        return start
    best, least = start, _criterion(_Fit(z, labels, start, 1), h)
    for degree in DEGREES[k]:
        fit = _descend(_Fit(z, labels, start, degree))
        if (value := _criterion(fit, h)) < least:
            best, least = fit.u, value
    return best


class _Fit:
    """The best polynomial for given directions, and how well it fits."""

    def __init__(self, z: FloatArray, labels: FloatArray, u: FloatArray, degree: int) -> None:
        self.z, self.labels, self.u, self.degree = z, labels, u, degree
        values, self.slopes = _polynomials(np.clip(z @ u, -_FAR, _FAR), degree)
        gram = values.T @ values
        gram[np.diag_indices_from(gram)] += 1e-9 * len(z)
        self.size = len(gram)
        self.weights = np.linalg.solve(gram, values.T @ labels)
        self.residual = labels - values @ self.weights
        self.loss = float((self.residual**2).sum())

    def moved(self, step: FloatArray) -> "_Fit":
        u, _ = np.linalg.qr(self.u + step)
        return _Fit(self.z, self.labels, u, self.degree)

    def gauss_newton(self) -> FloatArray:
        """The step that would be best if g were linear in the change of U; only across U, along it nothing moves."""
        p, k = self.u.shape
        across = self.z - (self.z @ self.u) @ self.u.T
        slope = [d @ self.weights for d in self.slopes]
        right = np.concatenate([across.T @ (s * self.residual).sum(axis=1) for s in slope])
        left = np.empty((k * p, k * p))
        for a, b in product(range(k), repeat=2):
            weight = (slope[a] * slope[b]).sum(axis=1)
            left[a * p : (a + 1) * p, b * p : (b + 1) * p] = across.T @ (across * weight[:, None])
        solved, *_ = np.linalg.lstsq(left, right, rcond=1e-8)
        return np.asarray(solved.reshape(k, p).T)


def _descend(fit: _Fit, steps: int = 4) -> _Fit:
    """Gauss-Newton with halving; stops where the fit stops improving."""
    for _ in range(steps):
        step = fit.gauss_newton()
        for part in (1.0, 0.5, 0.25, 0.1):
            new = fit.moved(part * step)
            if new.loss < fit.loss:
                break
        else:
            return fit
        gain, fit = fit.loss - new.loss, new
        if gain < 1e-6 * fit.loss:
            break
    return fit


def _criterion(fit: _Fit, h: int) -> float:
    """Schwarz's criterion; the directions count the same for every degree and are left out."""
    n = len(fit.z)
    return float(n * h * np.log(max(fit.loss, 1e-300) / (n * h)) + np.log(n) * fit.size * (h - 1))


def _polynomials(t: FloatArray, degree: int) -> tuple[FloatArray, list[FloatArray]]:
    """Normalised Hermite polynomials of total degree up to `degree`, and their derivatives along each axis."""
    k = t.shape[1]
    scale = np.sqrt(np.cumprod([1.0, *range(1, degree + 1)]))
    one: list[FloatArray] = [np.asarray(hermite_e.hermevander(t[:, axis], degree) / scale) for axis in range(k)]
    powers = [np.array(e) for e in product(range(degree + 1), repeat=k) if sum(e) <= degree]
    values = np.stack([_term(one, e) for e in powers], axis=1)
    slopes = []
    for axis in range(k):
        lower = [e - (np.arange(k) == axis) for e in powers]
        columns = [np.sqrt(e[axis]) * _term(one, np.maximum(d, 0)) for e, d in zip(powers, lower, strict=True)]
        slopes.append(np.stack(columns, axis=1))
    return values, slopes


def _term(one: list[FloatArray], powers: IntArray) -> FloatArray:
    return np.asarray(np.prod([column[:, e] for column, e in zip(one, powers, strict=True)], axis=0))
