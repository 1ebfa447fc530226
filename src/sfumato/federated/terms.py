"""Terms: what a coordinator proposes to the sites, and how a site reads it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from sfumato.bounds import PartialBounds
from sfumato.errors import SfumatoError
from sfumato.federated.voting import PICKS, Voting
from sfumato.privacy.budget import Budget
from sfumato.privacy.parameters import relation_of
from sfumato.privacy.plan import Line, Plan
from sfumato.privacy.unit import RECORD, Unit, unit_of
from sfumato.records import Response
from sfumato.settings.federated import Trust, trust_of
from sfumato.statistics.wire import RefusedError
from sfumato.steps.cca import Counting, JointPairs
from sfumato.steps.descent import Descent, Schedule
from sfumato.steps.lda import ClassMeans
from sfumato.steps.location import Locating, Location
from sfumato.steps.one_shot import OneShot
from sfumato.steps.pca import Components, VariancePicks
from sfumato.steps.picture import Snapshot
from sfumato.steps.ranks import Ranking
from sfumato.steps.second_order import HalfMoments, SliceKernel
from sfumato.steps.shape import RoughShape
from sfumato.sums import BoundedSum
from sfumato.typing import Relation

MOST_STEPS, MOST_PICKS = 12, 1000
_RUN = re.compile(r"[0-9a-f]{8,64}")
# Plans of every length are made of these lines: a site knows the longest, and which lines a run has is proposed.
_LATER = tuple(range(2, MOST_STEPS + 1))
_ANY = Schedule(shares=(1.0,) * MOST_STEPS, sized=_LATER, refined=_LATER)
_PLAN = Plan.of(
    Locating(Location(PartialBounds.nothing(1), 1.0, standardises=True)),
    Ranking(Response(), 1.0),
    RoughShape(1.0, 1.0),
    Descent(_ANY, 1.0, 1.0),
    OneShot(1.0),
    Snapshot(1.0),
    SliceKernel(1.0, "save", 2),
    HalfMoments(1.0),
    ClassMeans(1.0),
    Components(1.0),
    VariancePicks(PICKS, 1.0, 1.0),
    Counting(1),
    JointPairs(),
    Voting(1, PICKS, Response(), 1.0, 1.0),
    Voting(1, PICKS, Response(categories=2), 1.0, 1.0),
)
KNOWN: Mapping[str, Line] = {line.name: line for line in _PLAN.lines}
"""Every line a site answers; purpose, mechanism, formula and kind of question come from here, not from the
coordinator."""


def question_kind(line: str) -> type[BoundedSum]:
    """The kind of question a line may ask."""
    asks = KNOWN[line].asks
    assert asks is not None
    return asks


@dataclass(frozen=True, slots=True)
class Terms:
    """One run as proposed: who must be trusted, what may be spent, and the share of each release.

    `picks` are those of selections that name more than one feature.
    """

    run: str
    relation: Relation
    budget: Budget
    trust: Trust
    shares: tuple[tuple[str, float], ...]
    unit: Unit = RECORD
    picks: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, run: str, relation: Relation, budget: Budget, trust: Trust, plan: Plan, unit: Unit = RECORD) -> Self:
        """The terms that propose a plan."""
        shares = tuple((line.name, line.share) for line in plan.lines)
        more = tuple((line.name, line.picks) for line in plan.lines if line.picks != KNOWN[line.name].picks)
        return cls(run, relation, budget, trust, shares, unit, more)

    def plan(self) -> Plan:
        """The calibrated plan, computed by whoever reads the terms: noise is never taken from the wire."""
        picks = {name: line.picks for name, line in KNOWN.items()} | dict(self.picks)
        lines = tuple(replace(KNOWN[name], share=share, rho=0.0, picks=picks[name]) for name, share in self.shares)
        return Plan(lines).calibrate(self.budget, self.unit.factor)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        terms: dict[str, Any] = {"run": self.run, "relation": self.relation}
        terms |= {"shares": [list(share) for share in self.shares]}
        terms |= {"budget": asdict(self.budget), "trust": asdict(self.trust)}
        more: dict[str, Any] = {"rows_per_person": self.unit.rows} if self.unit != RECORD else {}
        return terms | more | ({"picks": dict(self.picks)} if self.picks else {})


def terms_from(data: Any) -> Terms:
    """The terms, or `RefusedError`."""
    keys = {"run", "relation", "budget", "trust", "shares"}
    if not isinstance(data, dict) or set(data) - {"rows_per_person", "picks"} != keys:
        raise RefusedError("the plan does not have the known fields.")
    budget, trust = data["budget"], data["trust"]
    if not isinstance(budget, dict) or set(budget) != {"epsilon", "delta", "rho"}:
        raise RefusedError("the plan's budget does not have the known fields.")
    if not isinstance(trust, dict) or set(trust) != {"kind", "sites", "honest"} or not _count(trust["sites"]):
        raise RefusedError("the plan's trust model does not have the known fields.")
    try:
        total = Budget(**budget)
        chosen = trust_of(trust["kind"], trust["sites"], trust["honest"])
        relation, unit = relation_of(data["relation"]), unit_of(data.get("rows_per_person"), has_ids=True)
        unit = unit if "rows_per_person" in data else RECORD
    except SfumatoError as error:
        raise RefusedError(f"the plan is refused: {error}") from None
    shares = _shares(data["shares"])
    return Terms(run_from(data["run"]), relation, total, chosen, shares, unit, _picks(data.get("picks", {}), shares))


def run_from(value: Any) -> str:
    """The name of a run: hexadecimal, so that it is a safe name of a folder."""
    if not isinstance(value, str) or not _RUN.fullmatch(value):
        raise RefusedError("the run's name must be 8 to 64 hexadecimal digits.")
    return value


def _count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 10**6


def _shares(data: Any) -> tuple[tuple[str, float], ...]:
    if not isinstance(data, list) or not 1 <= len(data) <= len(KNOWN):
        raise RefusedError("the plan has no lines, or too many.")
    for pair in data:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or pair[0] not in KNOWN:
            raise RefusedError("the plan has a line that sites do not answer.")
        if isinstance(pair[1], bool) or not isinstance(pair[1], int | float) or not 1e-6 <= pair[1] <= 1e6:
            raise RefusedError(f"the plan's line {pair[0]!r} must have a share from 1e-6 to 1e6.")
    if len({pair[0] for pair in data}) < len(data):
        raise RefusedError("the plan has a line twice.")
    return tuple((name, float(share)) for name, share in data)


def _picks(data: Any, shares: tuple[tuple[str, float], ...]) -> tuple[tuple[str, int], ...]:
    """How many features selections name; cost and noise follow from it."""
    named = {name for name, _ in shares if KNOWN[name].mechanism == "selection"}
    if not isinstance(data, dict) or not set(data) <= named:
        raise RefusedError("the plan says how many to pick for a line that picks nothing.")
    if not all(type(count) is int and 1 <= count <= MOST_PICKS for count in data.values()):
        raise RefusedError(f"the plan must pick from 1 to {MOST_PICKS} features on a line.")
    return tuple(sorted(data.items()))
