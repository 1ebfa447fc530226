"""The coordinator: proposes a plan, asks its lines, checks every upload, and fits on the sums."""

import json
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from sfumato.errors import InputError
from sfumato.estimators.parameters import budget_of, relation_of
from sfumato.estimators.pipeline import Task
from sfumato.estimators.pipeline import run as walk
from sfumato.estimators.sir import PrivateSIR
from sfumato.estimators.sparse import PrivateSparseSIR
from sfumato.federated.agreement import Watched
from sfumato.federated.facts import Facts
from sfumato.federated.sparse import SparseSites
from sfumato.federated.task import federated_task, too_small
from sfumato.federated.terms import Terms
from sfumato.federated.uploads import BadUploadError, facts_from, release_from
from sfumato.federated.wire import canonical, encode
from sfumato.privacy.ledger import Entry
from sfumato.privacy.plan import Plan
from sfumato.release import Release
from sfumato.settings.federated import FederatedCurator, SiteLedger, SitesLostError, trust_of
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

PATIENCE = 2


class Transport(Protocol):
    """Carries messages to sites; Flower, or a function call."""

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; a site that is slow or gone is simply absent."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes of one question to one site and of its answer (numbers and header)."""

    line: str
    site: str
    sent: int
    received: int


class RemoteSites:
    """The sites of one run, as the coordinator knows them. Implements `Sites`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.facts: dict[str, Facts] = {}
        self.left_out: dict[str, str] = {}
        self.transfers: list[Transfer] = []
        self._missed: Counter[str] = Counter()
        self._run, self._plan, self._ledger = "", Plan(()), SiteLedger.__new__(SiteLedger)

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site that takes part."""
        return {name: facts.n_records for name, facts in self.facts.items()}

    def meet(self, names: tuple[str, ...]) -> None:
        """Ask the sites for their public facts."""
        for site, (head, _) in self._exchange("facts", dict.fromkeys(names, canonical({"ask": "facts"}))).items():
            try:
                self.facts[site] = facts_from(head)
            except BadUploadError as error:
                self.left_out[site] = str(error)

    def dismiss(self, reasons: Mapping[str, str]) -> None:
        """Go on without some sites."""
        self.left_out |= reasons
        self.facts = {site: facts for site, facts in self.facts.items() if site not in reasons}

    def propose(self, terms: Terms, ledger: SiteLedger) -> None:
        """Propose the plan; a site that refuses does not take part."""
        self._run, self._plan, self._ledger = terms.run, terms.plan(), ledger
        message = canonical({"ask": "accept", "terms": terms.to_json()})
        replies = self._exchange("plan", dict.fromkeys(self.facts, message))
        for site in list(self.facts):
            if replies.get(site, ({}, b""))[0].get("accepted") is not True:
                self.left_out.setdefault(site, "did not answer the proposal.")
                del self.facts[site]

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's checked release; a site with a bad upload is left out of the rest of the run, and named."""
        line = self._plan.line(name)
        message = canonical({"ask": "answer", "run": self._run, "line": name, "query": encode(query)})
        asked = [site for site in self.facts if site not in self.left_out]
        releases = {}
        replies = self._exchange(name, dict.fromkeys(asked, message))
        self._miss(name, [site for site in asked if site not in replies])
        for site, (head, values) in replies.items():
            try:
                release = release_from(head, values, query, line, self._ledger.relation, self.facts[site].n_records)
                releases[site] = release
            except BadUploadError as error:
                self.left_out[site] = f"{name}: {error}"
        if releases:
            std = float(next(iter(releases.values())).noise_std.max())
            entry = (line.purpose, query.describe, line.event, std * (2 * line.rho) ** 0.5, std, line.share)
            self._ledger.record(Entry(*entry, self._ledger.relation))
        return releases

    def pick(self, query: BoundedSum, name: str) -> Mapping[str, IntArray]:
        """No plan that a deployment proposes has a selection."""
        raise RuntimeError(f"line {name!r} is a selection, which deployed sites do not answer.")

    def _miss(self, name: str, absent: list[str]) -> None:
        """A site that misses rounds in a row is given up, so that the others need not wait for it every time."""
        self._missed = Counter({site: self._missed[site] + 1 for site in absent})
        for site in absent:
            if self._missed[site] >= PATIENCE:
                self.left_out.setdefault(site, f"{name}: did not answer {PATIENCE} rounds in a row.")

    def close(self) -> dict[str, dict[str, Any]]:
        """End the run at every site; what each says it has spent."""
        message = canonical({"ask": "close", "run": self._run})
        asked = [site for site in self.facts if site not in self.left_out]
        return {site: head for site, (head, _) in self._exchange("close", dict.fromkeys(asked, message)).items()}

    def _exchange(self, line: str, requests: Mapping[str, str]) -> dict[str, tuple[dict[str, Any], bytes]]:
        replies = {}
        for site, (text, values) in self._transport.send(requests).items():
            if site not in requests or site in self.left_out:
                continue
            self.transfers.append(Transfer(line, site, len(requests[site]), len(text) + len(values)))
            head = _object(text)
            if head is None or "refused" in head:
                self.left_out[site] = f"{line}: {'unreadable reply' if head is None else str(head['refused'])[:500]}"
                continue
            replies[site] = (head, values)
        return replies


def fit_remote(
    estimator: PrivateSIR,
    transport: Transport,
    sites: tuple[str, ...],
    *,
    minimum: int | None = None,
    run: str | None = None,
    least: int | str | None = None,
) -> PrivateSIR:
    """Fit over remote sites, each of which adds all its own noise.

    Parameters
    ----------
    estimator : PrivateSIR
        Parameters of the fit; each site is asked to spend its (epsilon, delta).
    transport : Transport
    sites : tuple of str
        Whom to ask.
    minimum : int, optional
        Go on as long as this many sites answer; all of them by default.
    run : str, optional
        Name of the run. Giving the name of a run that was interrupted goes on with it: sites repeat their stored
        answers, at no further cost.
    least : int, "auto" or None
        Sites with fewer records do not take part (see `simulate`).

    Returns
    -------
    PrivateSIR
        Fitted, with ``sites_`` (facts), ``spending_`` (by site), ``left_out_`` (site: reason), ``disagreeing_``
        (see `simulate`) and ``transfers_``.
    """
    if estimator.random_state is not None or estimator.ledger is not None:
        raise InputError("random_state and ledger belong to the sites; leave them None at the coordinator.")
    if isinstance(estimator, PrivateSparseSIR):
        raise InputError("estimator: deployed sites answer PrivateSIR alone; try a sparse fit with simulate.")
    fitted: PrivateSIR = clone(estimator)
    relation, budget = relation_of(fitted.relation), budget_of(fitted.epsilon, fitted.delta, fitted.rho)
    needed = len(sites) if minimum is None else minimum
    remote = RemoteSites(transport)
    remote.meet(sites)
    remote.dismiss(too_small(remote.facts, least, budget))
    _enough(remote, needed)
    task = federated_task(fitted, remote.facts, relation)
    trust = trust_of("sites", len(remote.facts))
    ledger = SiteLedger(budget, relation, rehearsal=any(facts.rehearsal for facts in remote.facts.values()))
    ledger.trust = trust
    shares = tuple((line.name, line.share) for line in task.plan().lines)
    remote.propose(Terms(run or secrets.token_hex(16), relation, budget, trust, shares), ledger)
    _enough(remote, needed)
    task = federated_task(fitted, remote.facts, relation)
    try:
        watched = Watched(remote)
        fitted._keep(walk(_plain(task), FederatedCurator(watched, relation, needed)), ledger)
    except SitesLostError as error:
        if run is None:  # nobody can go on with a run without a name: give back what it set aside
            remote.close()
        raise SitesLostError(f"{error} Left out: {remote.left_out or 'nobody by name'}.") from None
    fitted.spending_, fitted.disagreeing_ = remote.close(), watched.disagreeing
    fitted.sites_, fitted.left_out_, fitted.transfers_ = remote.facts, remote.left_out, tuple(remote.transfers)
    _remember(fitted, next(iter(remote.facts.values())))
    return fitted


def _plain(task: Task | SparseSites) -> Task:
    assert isinstance(task, Task)
    return task


def _enough(remote: RemoteSites, needed: int) -> None:
    if len(remote.facts) < max(needed, 1):
        raise SitesLostError(
            f"only {len(remote.facts)} sites take part, {needed} are needed. Left out: {remote.left_out or 'nobody'}."
        )


def _remember(fitted: PrivateSIR, facts: Facts) -> None:
    fitted.n_features_in_ = facts.n_features
    if facts.feature_names is not None:
        fitted.feature_names_in_ = np.asarray(facts.feature_names, dtype=object)


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
