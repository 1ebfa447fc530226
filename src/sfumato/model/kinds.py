"""The table of estimators: which parameters and which released values a model file of each holds, and their shapes."""

from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args

import numpy as np

from sfumato.forecast.belief import Level, Verdict
from sfumato.methods import cca, lda, pca, sir, sparse_pca, sparse_sir
from sfumato.methods.base import PrivateReducer
from sfumato.methods.parameters import directions_of, share_of
from sfumato.methods.second_order import PrivateDR, PrivateSAVE
from sfumato.model.fields import (
    HUGE,
    Reader,
    array,
    bounds,
    given,
    known_number,
    labels,
    length_of,
    number,
    optional,
    places,
    record,
    relation,
    said_of_bounds,
    series,
    some_places,
    truth,
    whole,
    word,
)
from sfumato.model.strict import Node
from sfumato.privacy.unit import MOST_ROWS
from sfumato.records import HASH_BUCKETS
from sfumato.steps.cca import orthonormal_rows
from sfumato.steps.dimension import Choice
from sfumato.steps.lda import Rule
from sfumato.steps.picture import Picture
from sfumato.steps.screening import Screen
from sfumato.typing import FloatArray

HIDDEN = {"rule": "_rule", "used": "_used"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One estimator: its class, the readers of its parameters and releases, and what follows from the releases.

    A release called "mean" is kept as ``mean_``; one of `HIDDEN` under the name given there.
    """

    make: type[PrivateReducer]
    parameters: Mapping[str, Reader]
    released: Mapping[str, Reader]
    finish: Callable[[Any, Node], None] = lambda estimator, node: None

    def attribute(self, name: str) -> str:
        """Where the estimator keeps a release."""
        return HIDDEN.get(name, f"{name}_")


def _orthonormal(rows: FloatArray) -> bool:
    return np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0.0, atol=1e-6)


def _unit(rows: FloatArray) -> bool:
    return len(rows) <= rows.shape[1] and np.allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=0.0, atol=1e-6)


def _weights(rows: FloatArray) -> bool:
    return len(rows) <= rows.shape[1] and bool((np.linalg.norm(rows, axis=1) < 1.0 + 1e-6).all())


def _framed(picture: Picture) -> bool:
    edges = (picture.direction_edges, picture.response_edges)
    increasing = all(len(edge) >= 2 and (np.diff(edge) > 0).all() for edge in edges)
    groups = len(picture.response_edges) - 1
    named = picture.response_values is None or len(picture.response_values) == groups
    cut = picture.response_cuts is None or len(picture.response_cuts) == groups + 1
    return increasing and named and cut and picture.counts.shape == tuple(len(edge) - 1 for edge in edges)


def _supported(estimator: Any, node: Node) -> None:
    """Weight outside of the features kept would not be in the report."""
    if np.delete(estimator.directions_, estimator.support_, axis=1).any():
        node.refuse("zero in directions outside of support")


def discriminant(estimator: Any, node: Node) -> None:
    """What follows from the rule of a classifier."""
    used, classes = estimator._used, estimator.classes
    if used.max() >= (HASH_BUCKETS if classes is None else len(classes)):
        node.refuse("about the declared classes: used names others")
    estimator.centres_, estimator.priors_ = estimator._rule.centres, np.exp(estimator._rule.priors)


def pair(estimator: Any, node: Node) -> None:
    """What follows from canonical weights."""
    estimator.directions_ = orthonormal_rows(estimator.x_weights_)
    estimator.y_directions_ = orthonormal_rows(estimator.y_weights_)
    estimator.eigenvalues_ = estimator.correlations_


OPTIONAL = "rows_per_person"
"""A parameter that a file leaves out where it is None."""
PARAMETERS: dict[str, Reader] = {
    "epsilon": number,
    "delta": number,
    "rho": optional(number),
    "relation": relation,
    "rows_per_person": optional(whole(1, MOST_ROWS)),
    "n_directions": given(lambda value, sizes: directions_of(value, sizes["most"])),
    "bounds": said_of_bounds("p"),
    "random_state": optional(whole()),
}
CLASSES: dict[str, Reader] = {"classes": optional(labels)}
PICTURED: dict[str, Reader] = {"picture": given(lambda value, sizes: share_of(value, sir.PICTURE_SHARE))}


def number_or(*words: str) -> Reader:
    """A number of features, or one of a few words."""
    return lambda node, sizes: node.one_of(words) if isinstance(node.value, str) else node.whole(1)


def _by(methods: tuple[str, ...]) -> dict[str, Reader]:
    return {"method": word(methods)}


CHOICE = record(
    Choice,
    n_directions=length_of("k"),
    singular_values=series(least="k"),
    edge=known_number,
    given=truth,
    p_values=series(),
)
VERDICT = record(Verdict, level=word(get_args(Level)), sentence=lambda node, sizes: node.text())
PICTURE = record(
    Picture,
    "framed by increasing edges, one more than counts on each side",
    _framed,
    counts=array("columns", "groups"),
    noise_std=known_number,
    direction_edges=array("column edges"),
    response_edges=array("group edges"),
    is_ordered=truth,
    response_values=optional(array("values", most=HUGE)),
    response_cuts=optional(array("cuts", most=HUGE)),
    score_scale=known_number,
)
SCREEN = record(
    Screen,
    kept=places("s", "p", ordered=True),
    picked=places("picked", "p"),
    scores=array("picked"),
    threshold=known_number,
)
LOGARITHMS = 700.0
"""Of which the exponential is finite."""
RULE = record(Rule, centres=array("h", "k"), root=array("k", "k", most=HUGE), priors=array("h", most=LOGARITHMS))

DIRECTIONS: dict[str, Reader] = {
    "directions": array("k", "p", must="orthonormal rows", holds=_orthonormal),
    "standard_errors": array("k", "p", gaps=True, most=HUGE),
    "eigenvalues": series(most="k"),
}
PLACE: dict[str, Reader] = {
    "mean": array("p", most=HUGE),
    "bounds": bounds("p"),
    "unseen": optional(some_places("p")),
}
EXPLAINING = DIRECTIONS | PLACE | {"choice": CHOICE}
INVERSE = EXPLAINING | {
    "scale": array("p", most=HUGE, must="positive", holds=lambda values: bool((values > 0).all())),
    "picture": optional(PICTURE),
}
BELIEVED = INVERSE | {
    "directions": array("k", "p", must="rows of length one", holds=_unit),
    "privacy_errors": optional(array("k", "p", gaps=True, most=HUGE)),
    "loadings_errors": optional(array("k", "p", gaps=True, most=HUGE)),
    "verdict": optional(VERDICT),
}
COMPONENTS = DIRECTIONS | PLACE | {"explained_variance_ratio": series(most="k")}
SUPPORT: dict[str, Reader] = {"support": places("s", "p", ordered=True)}
PAIRS: dict[str, Reader] = {
    "x_weights": array("k", "p", must="at most p rows of length one", holds=_weights),
    "y_weights": array("k", "q", must="at most q rows of length one", holds=_weights),
    "correlations": series(most="k"),
    "mean": array("p", most=HUGE),
    "y_mean": array("q", most=HUGE),
    "bounds": bounds("p + q"),
    "unseen": optional(some_places("p + q")),
    "choice": CHOICE,
}

MODELS = (
    Kind(sir.PrivateSIR, PARAMETERS | _by(sir.METHODS) | CLASSES | PICTURED, BELIEVED),
    Kind(
        sparse.PrivateSparseSIR,
        PARAMETERS | _by(sparse.METHODS) | {"max_features": number_or("auto")} | CLASSES | PICTURED,
        BELIEVED | SUPPORT | {"screen": optional(SCREEN)},
        _supported,
    ),
    *(Kind(kind, PARAMETERS | {"n_slices": whole(2, 48)} | CLASSES, EXPLAINING) for kind in (PrivateSAVE, PrivateDR)),
    Kind(pca.PrivatePCA, PARAMETERS | _by(pca.METHODS), COMPONENTS),
    Kind(
        sparse_pca.PrivateSparsePCA,
        PARAMETERS | _by(sparse_pca.METHODS) | {"max_features": whole(1)},
        COMPONENTS | SUPPORT,
        _supported,
    ),
    Kind(
        lda.PrivateLDA,
        PARAMETERS | _by(lda.METHODS) | CLASSES,
        EXPLAINING | {"rule": RULE, "used": places("h", "codes")},
        discriminant,
    ),
    Kind(cca.PrivateCCA, PARAMETERS | {"y_bounds": said_of_bounds("q")} | _by(cca.METHODS), PAIRS, pair),
)
KINDS = {kind.make.__name__: kind for kind in MODELS}
MORE = ("sfumato.research.members",)
"""Modules with `KINDS` of their own. They are above this one, so they are imported by name, and only when a file or an
estimator is of none of the kinds here."""


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Every kind of model file, those of other modules included."""
    return dict(ChainMap(*(import_module(name).KINDS for name in MORE), KINDS))


def kinds_for(name: object) -> Mapping[str, Kind]:
    """The kinds among which `name` is to be looked up; one that nobody knows is refused with a list of those here."""
    known = not isinstance(name, str) or name in KINDS or name not in all_kinds()
    return KINDS if known else all_kinds()
