"""Site: the only code that sees records in a federation. It trusts nobody."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.federated.checks import SiteDecoder, check
from sfumato.federated.store import RunLedger, Store
from sfumato.federated.terms import Terms, question_kind, run_from, terms_from
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Unit
from sfumato.settings import adder_of
from sfumato.settings.federated import SiteFacts, describe_site, open_site, site_noise, site_plan
from sfumato.sources import Source
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.wire import RefusedError, digest, dump_json
from sfumato.typing import FloatArray

LOG = logging.getLogger("sfumato.federated")
ACCOUNT = "the site's account does not allow this."
SMALL = "the site has too few records to take part."
UNABLE = "the site cannot answer; its operator has been told why."


class TooSmallError(SfumatoError):
    """The site has fewer records than its operator wants it to have."""


class Site:
    """Answers a coordinator from one table, one ledger file and one folder of past answers.

    It accepts only plans made of known lines, computes their noise itself from its own copy, sets their whole cost
    aside in its ledger or refuses, and answers each line once: the same question gets the stored answer, another
    question for that line is refused.

    Parameters
    ----------
    source : Source
        The records.
    ledger : path
        A ledger file with a cap (`FileLedger`); every process of the site uses the same.
    folder : path
        Where answers are kept.
    name : str
    most : Budget, optional
        The most a single run may spend; None: what the ledger's cap allows.
    least : int, optional
        With fewer records than these the site takes no part. For public numbers alone: whether it takes part would
        tell something of a private one.
    tell : callable, optional
        Told, for the site's own operator, what each run asks for and why something was refused. What goes to the
        coordinator is a fixed sentence: neither a path nor what is left in the account.
    consent : callable, optional
        Asked about each new run, as `tell` would be told of it; False refuses it.
    random_state : int, optional
        Seeded noise for a rehearsal; the ledger must have been created for rehearsals.
    """

    def __init__(
        self,
        source: Source,
        ledger: str | PathLike[str],
        folder: str | PathLike[str],
        *,
        name: str = "site",
        most: Budget | None = None,
        least: int | None = None,
        tell: Callable[[str], None] = LOG.warning,
        consent: Callable[[str], bool] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.name = name
        self._source = source
        self._ledger = ledger
        self._store = Store(folder)
        self._most, self._least = most, least
        self.tell, self._consent = tell, consent
        self._random_state = random_state
        self._decoders: dict[str, SiteDecoder] = {}
        self._first: dict[int, Source] = {}

    def ledger(self, run: str = "", purpose: str = "federated run") -> RunLedger:
        """The site's ledger, for a new run or one that goes on.

        It must be the one the site has used from the beginning, and contain all that the site has written to it:
        another file would be a second account for the same records.
        """
        ledger, known = RunLedger(self._ledger, run, purpose=purpose), self._store.mark()
        if known is not None and known.ledger != ledger.id:
            raise InputError(
                f"ledger: {ledger.path.absolute()} is not the ledger this site has used so far (its id was "
                f"{known.ledger[:12]}..., this one's is {ledger.id[:12]}...); start the site with that one."
            )
        if known is not None and not ledger.continues(known):
            raise InputError(
                f"ledger: {ledger.path.absolute()} no longer contains what this site wrote to it, so it was cut or "
                "replaced; restore it from a backup."
            )
        return ledger

    def facts(self) -> SiteFacts:
        """What is public about the table."""
        ledger = self.ledger()
        found = replace(describe_site(self._source, ledger.relation, ledger.protects), rehearsal=ledger.rehearsal)
        if self._least is not None and found.n_records is None:
            raise InputError("least: the number of records is private here; leave it out.")
        if self._least is not None and found.n_records is not None and found.n_records < self._least:
            raise TooSmallError(f"least: there are {found.n_records} records, fewer than {self._least}.")
        return found

    def accept(self, data: Any) -> None:
        """Check a plan and set its cost aside. The same terms may come twice; nothing is charged twice."""
        terms = terms_from(data)
        known = self._store.terms(terms.run)
        if known is not None:
            if dump_json(known[0]) != dump_json(terms.to_json()):
                raise RefusedError("the run's name is taken by another plan.")
            return
        purpose, plan = f"federated run {terms.run}", site_plan(terms.plan(), terms.trust)
        ledger = self.ledger(purpose=purpose)
        self._refuse_unless_safe(terms, ledger)
        self.facts()
        adder_of(self._source).check()
        self._counted(terms.unit)
        reserved = ledger.reserved_for(purpose, plan)  # a site killed before it noted the run has set it aside already
        if reserved is None:
            self._ask_for(terms)
            ledger.reserve(plan)
        else:
            ledger = self.ledger(reserved, purpose)
        self._store.remember(ledger.mark)
        self._store.begin(terms.run, terms.to_json(), ledger.run)

    def answer(self, run: Any, line: Any, question: Any) -> FloatArray:
        """The noisy sum, or the private picks; charged before the noise is drawn, stored before it is sent."""
        terms, account = self._terms(run)
        if not isinstance(line, str) or line not in dict(terms.shares):
            raise RefusedError("the plan has no such line.")
        fingerprint = digest([line, question])
        kept = self._store.answer(terms.run, line, fingerprint)
        if kept is not None:
            return kept
        if terms.run not in self._decoders:  # one run at a time: what another left in memory is let go
            self._decoders = {terms.run: SiteDecoder()}
        query = self._decoders[terms.run].query(question)
        inner = query.query if isinstance(query, OnColumns) else query
        if type(inner) is not question_kind(line):
            raise RefusedError(f"line {line!r} does not ask this kind of question.")
        plan = terms.plan()
        picks = plan.line(line).picks if plan.line(line).mechanism == "selection" else 0
        check(query, self.facts())
        if picks > query.shape[-1]:
            raise RefusedError("the question is refused: it picks more features than it is about.")
        ledger, noise = self.ledger(account), site_noise(self._random_state, self.name)
        ledger.unit = terms.unit
        self._store.claim(terms.run, line, fingerprint)
        door = open_site(adder_of(self._counted(terms.unit)), plan, ledger, noise, terms.trust, self.name)
        value = door.select(query, line).astype(np.float64) if picks else door.answer(query, line).value
        self._store.remember(ledger.mark)
        self._store.keep(terms.run, line, value)
        return value

    def close(self, run: Any) -> dict[str, Any]:
        """End a run: what it did not use is given back; the site's spending is told, and the head of its ledger."""
        _, account = self._terms(run)
        ledger = self.ledger(account)
        ledger.close()
        self._store.remember(ledger.mark)
        delta = ledger.budget.delta or 1e-6
        spent = {"epsilon": ledger.spent(delta), "delta": delta, "releases": len(ledger.mine)}
        told = {"cap": ledger.budget.describe(), "guarantee": ledger.guarantee}
        return {**spent, **told, "ledger": ledger.id, "head": ledger.head}

    def _counted(self, unit: Unit) -> Source:
        """The rows that count, by this site's own ids."""
        if unit.rows is None:
            return self._source
        if unit.rows not in self._first:
            self._first = {unit.rows: self._source.first_rows(unit.rows)}
        return self._first[unit.rows]

    def _ask_for(self, terms: Terms) -> None:
        """Show the operator what a run asks for; without a yes, where one is needed, it is refused."""
        lines = ", ".join(name for name, _ in terms.shares)
        asked = f"run {terms.run[:8]} of {terms.trust.sites} site(s) asks for {terms.budget.describe()}: {lines}"
        if self._consent is None:
            self.tell(f"{asked}.")
        elif not self._consent(asked):
            raise RefusedError("the site's operator does not agree to this run.")

    def _terms(self, run: Any) -> tuple[Terms, str]:
        known = self._store.terms(run_from(run))
        if known is None:
            raise RefusedError("no plan of this name was accepted; propose it first.")
        return terms_from(known[0]), known[1]

    def _refuse_unless_safe(self, terms: Terms, ledger: RunLedger) -> None:
        if terms.relation != ledger.relation:
            raise RefusedError(f"the plan is for relation {terms.relation!r}, the site's ledger for another.")
        if terms.unit.kind != ledger.protects:
            raise RefusedError(f"the plan protects any one {terms.unit.kind}, the site's ledger a {ledger.protects}.")
        if terms.unit.rows is not None and not self._source.has_people:
            raise RefusedError("the plan protects persons, and this site's table does not say whose row is whose.")
        if ledger.rehearsal != (self._random_state is not None):
            raise RefusedError("the site's noise is seeded but its ledger is not for rehearsal, or the other way.")
        if terms.trust.share != 1:
            raise RefusedError("this site adds all its noise itself; propose trust='sites'.")
        if self._most is not None and not self._most.allows(terms.plan().events):
            raise RefusedError("the plan would spend more than one run may spend here.")


def handle(site: Site, request: str) -> tuple[str, bytes]:
    """One message to a site and its reply: JSON, and the numbers as little-endian float64. Never raises."""
    return answer_or_refuse(lambda: _reply(site, _read(request)), site.tell)


def answer_or_refuse(
    reply: Callable[[], tuple[str, bytes]], tell: Callable[[str], None] = LOG.warning
) -> tuple[str, bytes]:
    """A reply, or the refusal to make it; `tell` hears the reason.

    A `RefusedError` is a sentence about the request. Whatever else is wrong is the site's own affair, files and account
    among it, and the coordinator hears one of three fixed sentences. Anything unexpected is named by its type alone, to
    both: an error text might quote a record.
    """
    try:
        return reply()
    except RefusedError as error:
        why, detail = str(error), str(error)
    except BudgetError as error:
        why, detail = ACCOUNT, str(error)
    except TooSmallError as error:
        why, detail = SMALL, str(error)
    except SfumatoError as error:
        why, detail = UNABLE, str(error)
    except Exception as error:
        why = detail = f"unexpected {type(error).__name__} at the site."
    tell(f"refused a request: {detail}")
    return dump_json({"refused": why}), b""


def _read(request: str) -> dict[str, Any]:
    try:
        data = json.loads(request)
    except (ValueError, RecursionError):
        raise RefusedError("the message is not JSON.") from None
    if not isinstance(data, dict):
        raise RefusedError("the message is not a JSON object.")
    return data


def _reply(site: Site, data: dict[str, Any]) -> tuple[str, bytes]:
    match data:
        case {"ask": "facts"}:
            facts = site.facts()  # what leaves is named one by one: a fact added later must not leave by itself
            response = {"categories": facts.response.categories, "hashed": facts.response.hashed}
            names = None if facts.feature_names is None else list(facts.feature_names)
            about: dict[str, Any] = {"n_features": facts.n_features, "n_records": facts.n_records, "response": response}
            about |= {"has_response": facts.has_response, "n_second": facts.n_second}
            about |= {} if facts.classes is None else {"classes": list(facts.classes)}
            return dump_json({"name": site.name, **about, "feature_names": names, "rehearsal": facts.rehearsal}), b""
        case {"ask": "accept", "terms": terms}:
            site.accept(terms)
            return dump_json({"name": site.name, "accepted": True}), b""
        case {"ask": "answer", "run": run, "line": line, "query": query}:
            value = site.answer(run, line, query)
            head = {"name": site.name, "line": line, "shape": list(value.shape)}
            return dump_json(head), np.ascontiguousarray(value, dtype="<f8").tobytes()
        case {"ask": "close", "run": run}:
            return dump_json({"name": site.name, **site.close(run)}), b""
    raise RefusedError("the message asks for something that sites do not do.")
