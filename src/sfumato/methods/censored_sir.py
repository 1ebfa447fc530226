"""PrivateCensoredSIR: sliced inverse regression of times that are cut short, with a differential-privacy guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np

from sfumato.errors import InputError
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import PARAMETERS, About, Attack, finding, method_among
from sfumato.methods.base import location_of, open_session
from sfumato.methods.inputs import chosen_method, directions_of
from sfumato.methods.multi_sir import CellPopulation, CellReducer, CellTask, pieces_of
from sfumato.methods.sir import LINKED
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import Response
from sfumato.sources import ResponseKind, Source
from sfumato.steps.cells import CellRanking, double_slices, event_functions
from sfumato.steps.descent import Schedule
from sfumato.steps.ranks import BINS
from sfumato.typing import FloatArray, IntArray

Looks = Literal["events", "double-slicing"]
METHODS = ("auto", *get_args(Looks))
PIECES = 24
"""Of the time; every piece has a cell for either status."""
SEEN = 0.5
"""A status above this says that the event was seen."""
SCHEDULE = Schedule(levels=(0.95, 0.95))
"""Hardly a residual is clipped: what clipping takes off a skewed one depends on what cuts times short."""


@dataclass(frozen=True, slots=True)
class CensoredTask(CellTask):
    """What is public about a fit."""

    looks: Looks = "events"

    @property
    def ranking(self) -> CellRanking:
        share = self.schedule.ranks
        return CellRanking(self.response, share, BINS, n_features=self.n_features, pieces=(PIECES,), known=((SEEN,),))

    def functions(self, places: IntArray, probabilities: FloatArray) -> FloatArray:
        """Of the time until the event, or of the time and of what cuts it short."""
        make = event_functions if self.looks == "events" else double_slices
        return make(places, probabilities)

    def prospect(self) -> Prospect:
        """On times that one direction explains."""
        return Prospect(((self.looks, self),), CensoredTimes(self.n_features, fit=self))


@dataclass(frozen=True, slots=True)
class CensoredTimes(CellPopulation):
    """Times of which a direction explains the part `signal`, in logarithms; every other one is cut short by chance."""

    meaning: ClassVar[str] = "how much of the logarithm of the time it explains"

    @property
    def shown(self) -> int:
        return 1

    def responses(self, index: FloatArray, rng: np.random.Generator) -> FloatArray:
        time = np.sqrt(self.signal) * index[:, 0] + np.sqrt(1.0 - self.signal) * rng.standard_normal(len(index))
        end = rng.standard_normal(len(index))
        return np.column_stack([np.exp(np.minimum(time, end)), time <= end])

    def places(self, y: FloatArray) -> IntArray:
        return np.column_stack([pieces_of(y[:, 0], PIECES), y[:, 1] > SEEN]).astype(np.int64)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    for method in get_args(Looks):
        yield Attack(f"PrivateCensoredSIR {method}", PrivateCensoredSIR(**known, method=method), 4, two_tables=True)
    found = PrivateCensoredSIR(**finding(known))
    yield Attack("PrivateCensoredSIR, bounds found", found, 4, two_tables=True, replay_only=True)


@dataclass(eq=False, repr=False)
class PrivateCensoredSIR(CellReducer):
    """Directions of x that explain a time of which often only a lower bound is known, without revealing any one record.

    Of a patient who left the study, or a machine that still runs, one knows how long nothing happened. Leaving such
    records out, or taking their times for those of events, finds what explains who leaves; slices of the time within
    each status (Li, Wang and Chen 1999) tell the two apart.

    Parameters
    ----------
    epsilon, delta, n_directions, bounds, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`; the bounds are those of x. Times enter by their ranks.
    method : {"auto", "events", "double-slicing"}
        "auto" is "events": functions of time and status that have mean zero wherever x does not change the rate of
        events, whatever it has to do with who is cut short. "double-slicing" looks at all functions of the two, and
        finds what explains either: ask it for a direction more.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, in the units of x, most explaining first; times get longer along each.
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance of a function of time and status that the direction explains.
    standard_errors_, privacy_errors_, loadings_, loadings_errors_, choice_, verdict_, mean_, scale_, bounds_, ledger_
        As in `PrivateSIR`.

    Notes
    -----
    It is assumed that, given x, being cut short has nothing to do with the time of the event. Where x explains both by
    combinations that are correlated with each other, the first direction of "events" leans towards that of the
    censoring (`docs/methods/censored-sir.md` has figures); both lie in what "double-slicing" spans.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateCensoredSIR
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(20_000, 5)), rng.normal(size=(20_000, 2))
    >>> event = np.exp(x[:, 1] + 0.5 * noise[:, 0])
    >>> end = np.exp(1.5 * x[:, 3] + 0.5 * noise[:, 1])  # who leaves early is another matter
    >>> y = np.column_stack([np.minimum(event, end), event <= end])
    >>> sir = PrivateCensoredSIR(epsilon=1.0, n_directions=1, bounds=Bounds(-5, 5)).fit(x, y)
    >>> bool(sir.directions_[0, 1] > 0.98), round(sir.ledger_.total(), 6)
    (True, 1.0)
    """

    method: str = "auto"

    about: ClassVar[About] = About(
        title="Private sliced inverse regression of censored times",
        page="methods/censored-sir.md",
        options=("second", "method"),
        method=lambda fitted: "double slicing" if fitted.method == "double-slicing" else "counting of events",
        federated=False,
        parameters=PARAMETERS | method_among(METHODS),
        released=LINKED,
        attacks=_attacks,
    )

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array, dataframe, Arrow table, or Source
            Features; or a Source that names time and status, in that order: ``scan(path, second=["time", "died"])``.
        y : array or dataframe of shape (n, 2)
            Observed time, and whether the event was seen then (1, or more than a half) or the time was cut short (0).
            A structured array with one field of booleans, as scikit-survival has it, will do.
        groups : array or series, optional
            Whose row it is, as in `PrivateSIR.fit`.
        """
        return self._fit(open_session(self, X, y, groups))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        return super()._read(X, _plain(y), response_kind, unit)

    def _cells(self, n_features: int, n_targets: int, n_records: int | None) -> CensoredTask:
        if n_targets != 2:
            raise InputError(
                f"y must have two columns, the time and whether the event was seen (1) or not (0), got {n_targets}."
            )
        method = chosen_method(self, METHODS)
        looks = cast(Looks, "events" if method == "auto" else method)
        k, bounds = directions_of(self.n_directions, n_features), location_of(self, n_features, n_records)
        return CensoredTask(n_features, n_records, Response(), k, bounds, schedule=SCHEDULE, looks=looks)


def _plain(y: Any) -> Any:
    """Time and status as columns, of a structured array with two fields; anything else as it is."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None or len(names) != 2:
        return y
    time, status = sorted(names, key=lambda name: y.dtype[name].kind == "b")
    return np.column_stack([y[time], y[status]])
