"""What a federation agrees on before a record is read: the public facts of the fit, from the sites' own facts.

In a sparse fit (`SparseSites`) every site votes privately for the features that matter, then the usual descent on them.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from sklearn.utils import get_tags

from sfumato import cells
from sfumato.bounds import Bounds, PartialBounds
from sfumato.errors import InputError
from sfumato.federated.voting import PICKS, Ballot, Voters, Voting, rounds, screen_by_votes
from sfumato.methods import FAMILY, load
from sfumato.methods.base import ExplainingTask, Planned, given_of, search_of
from sfumato.methods.sir import Outcome, Task, with_picture
from sfumato.methods.sparse_sir import SparseTask, solve_kept
from sfumato.privacy.asking import Asking, on_columns
from sfumato.privacy.budget import Budget
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import Response
from sfumato.settings.federated import SiteFacts
from sfumato.sources import declared_response
from sfumato.steps.descent import FOUR_STEPS, Descent, Schedule
from sfumato.steps.location import Locating, Location, location_share
from sfumato.steps.pursuit import Rule
from sfumato.steps.ranks import Ranking
from sfumato.steps.screening import Screen
from sfumato.steps.shape import RoughShape
from sfumato.typing import Relation, is_whole

FEW_ROUNDS = replace(
    FOUR_STEPS, shares=(2.0, 2.0, 3.0), sized=(2, 3), weights=(1.0, 1.0, 0.7, 0.5), bins=24, ranks=0.15
)
"""Noise is sqrt(K) times that of a central run, so three steps and four functions of the response rather than four and
twelve: each step keeps enough of the budget to see something, and fewer rounds are sent. Functions of ranks that are
mostly noise have no directions to show, so bins are few and get twice the budget."""
FEW_FUNCTIONS = replace(FOUR_STEPS, levels=(0.5, 0.5), weights=(1.0, *([0.8] * 7)))
"""Between the two: all steps, fewer functions, and residuals cut sooner."""
ENOUGH, PLENTY = 2_000.0, 6_000.0


def schedule_of(sites: int, n_records: int | None, budget: Budget) -> Schedule:
    """The descent's schedule, from public numbers alone.

    ``n mu / sqrt(K)`` is how many times the noise of a sum of signs over all records fits into n: where that is large
    the noise hardly shows, and the wide basis of a central fit, which sees rare groups of the response, is affordable.

    >>> schedule_of(10, 10_000, Budget.approximate(1.0, 1e-5)) is FEW_ROUNDS
    True
    """
    times = 0.0 if n_records is None else n_records * budget.mu() / math.sqrt(sites)
    return FOUR_STEPS if times > PLENTY else FEW_FUNCTIONS if times > ENOUGH else FEW_ROUNDS


def least_records(n_features: int, budget: Budget, tolerance: float = 0.5) -> int:
    """Fewest records with which a site's own noise leaves anything to see: the rule of He, Zhang and Chen, corrected.

    The mean of n whitened records, each of length sqrt(p) at most, moves by ``2 sqrt(p) / n`` when one is replaced. Its
    noise has ``2 sqrt(p) / (n mu)`` in each coordinate, which is to be `tolerance` standard deviations of a feature at
    most. The paper has sqrt(log(1 / delta)) / epsilon for 1 / mu, and half the sensitivity.

    >>> least_records(10, Budget.approximate(1.0, 1e-5))
    48
    """
    return math.ceil(2.0 * math.sqrt(n_features) / (budget.mu() * tolerance))


def too_small(facts: Mapping[str, SiteFacts], least: int | str | None, budget: Budget) -> dict[str, str]:
    """Sites with fewer than `least` records and the sentence that says so; "auto" is `least_records`."""
    if least is None:
        return {}
    if not (least == "auto" or is_whole(least, 1)):
        raise InputError(f"least must be None, 'auto' or a whole number from 1 on, got {least!r}.")
    found = {}
    for name, fact in facts.items():
        if fact.n_records is None:
            raise InputError("least needs public numbers of records; use relation='replace' or leave least None.")
        needed = least_records(fact.n_features, budget) if least == "auto" else int(least)
        if fact.n_records < needed:
            found[name] = f"has {fact.n_records} records, fewer than the {needed} asked for."
    return found


SHARES = {"ranks": 0.15, "picks": 0.7, "scores": 0.3, "radius": 0.02, "residual": 0.03, "shape": 0.12, "solve": 0.45}
"""Parts of the zCDP cost; relative. Votes take much, as a site votes by itself and what follows adds up all sites; and
from the ranks the functions are made that features are scored with."""
CLASS_SHARES = SHARES | {"ranks": 0.03, "picks": 0.8, "scores": 0.35}
"""Classes need no ranks. They have one table of functions for the votes, not two, and weak features among many strong
ones: more for the names pays there."""


COUNTS, FEW = ("ranks", "radius", "residual"), 10
"""Histograms, and the sites with which they have the shares above."""


def shares_of(response: Response, sites: int) -> Mapping[str, float]:
    """The shares of a fit over so many sites.

    Counts of K sites have sqrt(K) times the noise of one for K times the records: a histogram would be as sharp as that
    of one site for a K-th of the budget. The sample is sharper, too, by as much, so its share falls with the root of
    K: half of the gain is kept. The votes, in which every site is alone, have what that leaves.

    >>> [round(shares_of(Response(), sites)["picks"], 2) for sites in (1, 10, 20, 50, 100)]
    [0.7, 0.7, 0.76, 0.81, 0.84]
    """
    usual = SHARES if response.categories is None else CLASS_SHARES
    part = math.sqrt(min(FEW / sites, 1.0))
    left = (1.0 - part) * sum(usual[name] for name in COUNTS)
    return usual | {name: part * usual[name] for name in COUNTS} | {"picks": usual["picks"] + left}


LOCATED = 10
"""Features that are usually kept, for the share of the search for their bounds."""


@dataclass(frozen=True, slots=True)
class SparseSites(ExplainingTask):
    """What is public about a sparse fit over sites; a site names `picks` features in each round.

    A search for bounds is about the features that were kept, which it follows.
    """

    picks: int
    sites: int
    schedule: Schedule
    picture: float = 0.0

    def plan(self) -> Plan:
        """Every release of a site, with its share. Ranks come from sums, as quantiles cannot be added."""
        shares = self.shares
        voting = Voting(self.sites, self.picks, self.response, shares["picks"], shares["scores"])
        shape = RoughShape(shares["radius"], shares["shape"])
        descent = Descent(self.schedule, shares["solve"], shares["residual"])
        steps = (self.ranking, voting, Locating(self.bounds), shape, descent)
        return Plan.of(*with_picture(self.picture, *steps))

    @property
    def shares(self) -> Mapping[str, float]:
        return shares_of(self.response, self.sites)

    @property
    def ranking(self) -> Ranking:
        return Ranking(self.response, self.shares["ranks"], self.schedule.bins)

    @property
    def known(self) -> PartialBounds:
        """What is known of all features."""
        if isinstance(self.bounds, Location):
            return self.bounds.known
        return PartialBounds.of(self.bounds, self.n_features)


def run_sparse_sites(task: SparseSites, voters: Voters) -> Asking[tuple[Outcome, Screen]]:
    """Walk the plan; sites vote for features between its questions. The outcome is about all features again."""
    ranks = yield from task.ranking.run(task.n_records)
    n = float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.picks)
    known = task.known
    centre = np.nan_to_num(known.lower / 2 + known.upper / 2)
    ballot = Ballot(centre, ranks, task.sites, task.picks)
    found = yield from screen_by_votes(voters, ballot, n, task.n_directions or 1)
    some = known.some(found.kept)
    if isinstance(task.bounds, Location) and some.asked.size:
        search: Bounds | Location = replace(task.bounds, known=some)
    else:
        search = Bounds(some.lower, some.upper)
    located = yield from on_columns(Locating(search).run(len(found.kept), task.n_records), found.kept)
    facts = (len(found.kept), task.n_records, task.response, task.n_directions, located.bounds)
    few = Task(*facts, picture=task.picture, schedule=replace(task.schedule, sparse=True))
    return (yield from solve_kept(few, ranks, known, found.kept, located)), found


class SitesTask(Planned, Protocol):
    """What is public about a fit over sites: a task as any other, at the noise that sites add."""

    @property
    def n_features(self) -> int:
        """Features, of two tables those of the first."""

    @property
    def n_records(self) -> int | None:
        """Of all sites, None where it is private."""


def federated_task(
    estimator: Any, facts: Mapping[str, SiteFacts], relation: Relation, noises: float | None = None, unit: Unit = RECORD
) -> SitesTask | SparseSites:
    """The task of a federated fit, every fact of the sites compared.

    The noise of their sum has `noises` times the variance of a central fit's: as many as there are sites, unless they
    share it. ``method="auto"`` is chosen at that noise, and a descent has the schedule of the federation.
    """
    agreed = _agreed(estimator, facts)
    sizes = [fact.n_records for fact in facts.values()]
    n_records = None if relation == "add-remove" or unit != RECORD else _total(sizes)
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.rho)
    schedule = schedule_of(len(facts), n_records, budget)
    task = estimator._task(agreed.n_features, n_records, agreed.response)
    noises = len(facts) if noises is None else noises
    if isinstance(task, SparseTask):
        return _sparse(task, estimator, len(facts), schedule, noises, budget)
    if isinstance(task.bounds, Location):
        # As if one curator had so small a budget that its noise were that of the sum.
        known, mu = task.bounds, budget.mu() / math.sqrt(noises)
        task = replace(task, bounds=search_of(known.known, n_records, mu, known.insists))
    if isinstance(task, Task):
        task = replace(task, schedule=schedule)
    if not hasattr(task, "method") or estimator.method != "auto":
        return cast(SitesTask, task)
    return cast(SitesTask, replace(task, method=task.prospect().best(budget, n_records, relation, noises)))


def refuse_unless_federated(estimator: Any) -> None:
    """Refuse what sites cannot fit: whatever is not of the family or not for them, and the papers' own methods."""
    members = tuple(member for member in map(load, FAMILY.values()) if member.about.federated)
    if not isinstance(estimator, members) or estimator.about.home != "sfumato":
        known = ", ".join(member.__name__ for member in members)
        raise InputError(f"estimator must be one of {known}, got a {type(estimator).__name__}.")


def odd_sites(estimator: Any, facts: Mapping[str, SiteFacts]) -> dict[str, str]:
    """Sites whose tables are unlike those of most others, and in what; nobody where no kind of table prevails."""
    alike: dict[Any, list[str]] = defaultdict(list)
    for name, fact in facts.items():
        alike[tuple(_compared(estimator, fact).values())].append(name)
    most, *others = sorted(alike.values(), key=len, reverse=True) or [[]]
    if others and len(others[0]) == len(most):
        return {}
    usual = {name: _compared(estimator, facts[name]) for name in most[:1]}
    return {
        name: f"differs from the other sites in the {_differing(usual[most[0]], _compared(estimator, facts[name]))}."
        for group in others
        for name in group
    }


def _agreed(estimator: Any, facts: Mapping[str, SiteFacts]) -> SiteFacts:
    """The facts that all sites share, which must be what the estimator needs."""
    if not facts:
        raise InputError("sites: none is there; give at least one.")
    (first, agreed), *others = facts.items()
    for name, other in others:
        apart = _differing(_compared(estimator, agreed), _compared(estimator, other))
        if apart:
            raise InputError(f"sites: {first!r} and {name!r} differ in the {apart}; make their tables agree.")
    kind, tags = type(estimator).__name__, get_tags(estimator).target_tags
    if tags.multi_output and not agreed.n_second:
        raise InputError(f"sites: {kind} needs a second table at each; name its columns with second (--second).")
    if agreed.n_second and not tags.multi_output:
        raise InputError(f"sites: {kind} takes no second table; leave second (--second) out at each.")
    if tags.required and not (tags.multi_output or agreed.has_response):
        raise InputError(f"sites: {kind} needs a response at each; name its column with response (--response).")
    classes = getattr(estimator, "classes", None)
    if classes is not None and not _lists(agreed, classes):
        raise InputError("classes must be the same at each site; give the same list there, in the same order.")
    return agreed


def _compared(estimator: Any, fact: SiteFacts) -> dict[str, object]:
    """What sites must have in common; of the response nothing, where it is not looked at."""
    tags = get_tags(estimator).target_tags
    looked_at = tags.required and not tags.multi_output
    return {
        "number of features": fact.n_features,
        "number of columns of the second table": fact.n_second,
        "kind of response": (fact.has_response, fact.response) if looked_at else None,
        "classes, or their order": fact.classes if looked_at else None,
        "names of the features": fact.feature_names,
    }


def _lists(fact: SiteFacts, classes: Sequence[Any]) -> bool:
    """Whether a site's response has these classes; their number alone, where a site did not tell their names."""
    known = fact.classes is None or fact.classes == tuple(cells.name(key) for key in cells.keys_of(classes, "classes"))
    return known and fact.response == declared_response(True, classes)


def _differing(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    return next((what for what, value in one.items() if other[what] != value), "")


def _sparse(
    task: SparseTask, estimator: Any, sites: int, schedule: Schedule, noises: float, budget: Budget
) -> SparseSites:
    if task.rule != Rule():
        raise InputError("method: 'blocks' is for records in one place; over sites leave it out.")
    bounds: Bounds | Location | None = given_of(task.known)
    if bounds is None:  # the share is that of a search at the noise of the sum, beside all that is spent otherwise
        shares = shares_of(task.response, sites)
        usual = PartialBounds.nothing(min(LOCATED, task.n_features))
        share = location_share(usual, task.n_records, budget.mu() / math.sqrt(noises))
        bounds = Location(task.known, share * sum(shares.values()))
    picks = PICKS if estimator.max_features == "auto" else math.ceil(task.picks / rounds(sites))
    facts = (task.n_features, task.n_records, task.response, task.n_directions)
    return SparseSites(*facts, bounds, picks, sites, schedule, task.picture)


def _total(sizes: Sequence[int | None]) -> int:
    if any(size is None for size in sizes):
        raise InputError(
            "sites: the number of records must be public under relation='replace', unless rows_per_person is set."
        )
    return sum(size for size in sizes if size is not None)
