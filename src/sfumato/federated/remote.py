"""The sites of a run as a coordinator knows them: asks their lines, checks every upload, gives up on who is gone.

Uploads are checked here, as Flower's own aggregation accepts NaN and broadcasts wrong shapes.
"""

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.federated.store import Journal
from sfumato.federated.terms import Terms
from sfumato.privacy import mechanisms
from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.ledger import Entry
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.release import Release
from sfumato.settings.federated import SiteFacts, SiteLedger, SitesLostError
from sfumato.statistics.histograms import Histogram
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.wire import dump_json, encode
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation

FACTS = dump_json({"ask": "facts"})
PATIENCE = 2
T = TypeVar("T")


class Transport(Protocol):
    """Carries messages to sites; Flower, or a function call."""

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; a site that is slow or gone is simply absent."""


class NumberedSites(ABC):
    """Sites that a network knows by numbers of its own, named as they call themselves. Implements `Transport`."""

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self._first: dict[str, tuple[str, bytes]] = {}

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites that answered."""
        return tuple(self.nodes)

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; who is slow or gone is absent."""
        if set(requests.values()) == {FACTS}:
            return self._first
        replies = self._exchange({self.nodes[name]: text for name, text in requests.items()})
        return {name: replies[self.nodes[name]] for name in requests if self.nodes[name] in replies}

    def _introduce(self, replies: Mapping[int, tuple[str, bytes]]) -> None:
        """Learn the names of sites from what they said about themselves."""
        for node, reply in sorted(replies.items()):
            name = name_of(reply[0], str(node))
            if name in self.nodes:
                raise SitesLostError(f"two sites are called {name!r}; give every site its own name.")
            self.nodes[name], self._first[name] = node, reply

    @abstractmethod
    def _exchange(self, requests: Mapping[int, str]) -> Mapping[int, tuple[str, bytes]]:
        """Replies by number, of those who answer in time."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes of one question to one site and of its answer (numbers and header)."""

    line: str
    site: str
    sent: int
    received: int


class RemoteSites:
    """The sites of one run, as the coordinator knows them. Implements `Sites`."""

    def __init__(self, transport: Transport, journal: Journal) -> None:
        self._transport = transport
        self._journal = journal
        self.facts: dict[str, SiteFacts] = {}
        self.left_out: dict[str, str] = {}
        self.transfers: list[Transfer] = []
        self._missed: Counter[str] = Counter()
        self._reserved: list[str] = []
        self._picked: set[str] = set()
        # Neither is known before `propose`, and no line is asked before it; a ledger without a budget cannot be made.
        self._plan, self._ledger = Plan(()), SiteLedger.__new__(SiteLedger)

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site that accepted the plan, here or gone."""
        return self._journal.accepted

    def meet(self, names: tuple[str, ...]) -> None:
        """Ask the sites for their public facts."""
        for site, (head, _) in self._exchange("facts", dict.fromkeys(names, FACTS)).items():
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
        self._plan, self._ledger = terms.plan(), ledger
        ledger.reserve(self._plan)  # what a site that accepts will spend, here for the record
        message = dump_json({"ask": "accept", "terms": terms.to_json()})
        replies = self._exchange("plan", dict.fromkeys(self.facts, message))
        for site in list(self.facts):
            if replies.get(site, ({}, b""))[0].get("accepted") is not True:
                self.left_out.setdefault(site, "did not answer the proposal.")
                del self.facts[site]
        self._reserved = list(self.facts)
        self._journal.accept({site: facts.n_records for site, facts in self.facts.items()})

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's checked release; a site with a bad upload is left out of the rest of the run, and named."""
        return self.each(dict.fromkeys(self.sizes, query), name)

    def each(self, queries: Mapping[str, BoundedSum], name: str) -> Mapping[str, Release]:
        """The checked releases of the sites in `queries`, each for its own question."""
        line, relation = self._plan.line(name), self._ledger.relation

        def read(site: str, head: dict[str, Any], values: bytes) -> Release:
            bounded = self._ledger.unit.of(queries[site])
            return release_from(head, values, bounded, line, relation, self.facts[site].n_records)

        releases = self._answers(queries, line, read)
        if releases:
            std = float(next(iter(releases.values())).noise_std.max())
            self._record(next(iter(queries.values())), line, std * (2 * line.rho) ** 0.5, std)
        return releases

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """The checked picks of those asked. Sites that take turns spend the line once each, so it is recorded once."""
        line, queries = self._plan.line(name), dict.fromkeys(asked, query)
        picks = self._answers(queries, line, lambda site, head, values: picks_from(head, values, query, line))
        if picks and isinstance(line.event, Selection) and name not in self._picked:
            self._picked.add(name)
            spread = self._ledger.unit.of(query).spread(self._ledger.relation)
            self._record(query, line, spread / 2.0, math.pi / math.sqrt(6.0) * spread / line.event.epsilon)
        return picks

    def _answers(
        self, queries: Mapping[str, BoundedSum], line: Line, read: Callable[[str, dict[str, Any], bytes], T]
    ) -> dict[str, T]:
        self._journal.go_on()
        head = {"ask": "answer", "run": self._journal.run, "line": line.name}
        known: dict[int, str] = {}
        asked = {}
        for site in (site for site in self.facts if site in queries and site not in self.left_out):
            query = queries[site]
            if id(query) not in known:  # sites mostly share one question: its text, which may be long, is made once
                known[id(query)] = dump_json({**head, "query": encode(query)})
            asked[site] = known[id(query)]
        replies = self._exchange(line.name, asked)
        self._miss(line.name, asked, replies)
        found = {}
        for site, (head, values) in replies.items():
            try:
                found[site] = read(site, head, values)
            except BadUploadError as error:
                self.left_out[site] = f"{line.name}: {error}"
        return self._journal.same(line.name, queries, found)

    def _record(self, query: BoundedSum, line: Line, sensitivity: float, std: float) -> None:
        unit = self._ledger.unit
        entry = (line.purpose, unit.of(query).describe, line.event, sensitivity, std, line.share)
        self._ledger.record(Entry(*entry, self._ledger.relation, unit=unit))

    def _miss(self, name: str, asked: Collection[str], replies: Collection[str]) -> None:
        """A site that misses rounds in a row is given up, so that the others need not wait for it every time."""
        for site in asked:
            self._missed[site] = 0 if site in replies else self._missed[site] + 1
            if self._missed[site] >= PATIENCE:
                self.left_out.setdefault(site, f"{name}: did not answer {PATIENCE} rounds in a row.")

    def close(self) -> dict[str, dict[str, Any]]:
        """End the run at every site that set its cost aside, also at those that were left out since; what each says it
        has spent, in all its runs together. Who is gone is not waited for."""
        return self._release(self._journal.run, [site for site in self._reserved if self._missed[site] < PATIENCE])

    def give_up(self, runs: Collection[str]) -> None:
        """End runs that nobody will go on with: sites give back what they had set aside for them."""
        for run in runs:
            self._release(run, list(self.facts))

    def _release(self, run: str, sites: Collection[str]) -> dict[str, dict[str, Any]]:
        message, found = dump_json({"ask": "close", "run": run}), {}
        replies = self._transport.send(dict.fromkeys(sites, message)) if sites else {}
        for site in sorted(set(sites) & set(replies)):
            text, values = replies[site]
            self.transfers.append(Transfer("close", site, len(message), len(text) + len(values)))
            told = spending_from(_object(text) or {})
            if told is not None:
                found[site] = told
        return found

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


def name_of(head: str, otherwise: str) -> str:
    """What a site calls itself in a reply."""
    name = (_object(head) or {}).get("name")
    return name if isinstance(name, str) and 0 < len(name) <= 100 else otherwise


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


REACH = 12.0
"""Standard deviations of noise an honest answer may be off by: one number in 10**32 is."""
_NO_COUNT = 2**40
_LONGEST = 1000


class BadUploadError(SfumatoError):
    """An upload that no honest site sends; says what is wrong with it."""


def facts_from(head: dict[str, Any]) -> SiteFacts:
    """A site's facts, or `BadUploadError`."""
    features, records, response = head.get("n_features"), head.get("n_records"), head.get("response")
    names, second = head.get("feature_names"), head.get("n_second", 0)
    if type(features) is not int or not 1 <= features <= 10**6:
        raise BadUploadError("the number of features is not a count.")
    if records is not None and (type(records) is not int or not 1 <= records < _NO_COUNT):
        raise BadUploadError("the number of records is not a count.")
    if not isinstance(response, dict) or set(response) != {"categories", "hashed"}:
        raise BadUploadError("the kind of response is missing.")
    count = response["categories"]
    if not isinstance(response["hashed"], bool) or not (count is None or (type(count) is int and 1 <= count < 2**16)):
        raise BadUploadError("the kind of response is not known.")
    if names is not None and (not isinstance(names, list) or not all(isinstance(name, str) for name in names)):
        raise BadUploadError("the feature names are not names.")
    if names is not None and len(names) != features:
        raise BadUploadError("there are more or fewer feature names than features.")
    classes = head.get("classes")
    if classes is not None and (not isinstance(classes, list) or not all(isinstance(name, str) for name in classes)):
        raise BadUploadError("the classes are not names.")
    if type(second) is not int or not 0 <= second < features:
        raise BadUploadError("the number of columns of the second table is not a count.")
    kind = Response(count, response["hashed"])
    rehearsal, explained = head.get("rehearsal") is not False, head.get("has_response", True) is True
    listed, called = (None if given is None else tuple(given) for given in (classes, names))
    return SiteFacts(features, records, kind, called, rehearsal, explained, second, listed)


def spending_from(head: dict[str, Any]) -> dict[str, Any] | None:
    """What a site says it has spent in all its runs; None if it does not. It goes into a file: nothing else does."""
    numbers = {name: head.get(name) for name in ("epsilon", "delta", "releases")}
    texts = {name: head.get(name) for name in ("cap", "guarantee", "ledger", "head")}
    said = all(isinstance(value, str) and len(value) <= _LONGEST for value in texts.values())
    return numbers | texts if said and all(map(_is_amount, numbers.values())) else None


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _NO_COUNT


def release_from(
    head: dict[str, Any], values: bytes, query: BoundedSum, line: Line, relation: Relation, records: int | None
) -> Release:
    """The upload as a release with the noise the plan prescribes, or `BadUploadError`.

    No honest sum over n records has a coordinate beyond n times what one record may weigh, give or take the noise;
    where n is private only the shape and finiteness can be checked.
    """
    if head.get("line") != line.name or head.get("shape") != list(query.shape):
        raise BadUploadError("the upload has the wrong shape or answers another line.")
    if len(values) != 8 * int(np.prod(query.shape)):
        raise BadUploadError("the upload has the wrong length.")
    value = np.frombuffer(values, dtype="<f8").reshape(query.shape)
    if not np.isfinite(value).all():
        raise BadUploadError("the upload has values that are not finite (NaN or inf).")
    event = line.event
    assert isinstance(event, Gaussian)
    std = mechanisms.released_std(query, relation, event)
    if records is not None:
        largest = records * query.norm / query.weights * query.grid + REACH * std
        if (np.abs(value) > largest * (1 + 1e-9)).any():
            raise BadUploadError("the upload has values larger than its records can add up to.")
        inner = query.query if isinstance(query, OnColumns) else query
        if isinstance(inner, Histogram) and abs(value.sum() - records) > REACH * np.linalg.norm(std):
            raise BadUploadError("the upload counts another number of records than the site says it has.")
    return Release(value, std)


def picks_from(head: dict[str, Any], values: bytes, query: BoundedSum, line: Line) -> IntArray:
    """The upload as picks among the columns asked about, or `BadUploadError`."""
    if head.get("line") != line.name or head.get("shape") != [line.picks] or len(values) != 8 * line.picks:
        raise BadUploadError("the upload has the wrong shape or answers another line.")
    value = np.frombuffer(values, dtype="<f8")
    if not np.isfinite(value).all() or (value != np.rint(value)).any():
        raise BadUploadError("the upload has picks that are not whole numbers.")
    if value.min() < 0 or value.max() >= query.shape[-1] or np.unique(value).size < value.size:
        raise BadUploadError("the upload has picks that are not there, or one twice.")
    return value.astype(np.int64)
