"""The pages: what is asked for, and what is shown. Every answer is made from names, parameters and released values."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sfumato.errors import BudgetError, InputError, SfumatoError, describe_unexpected
from sfumato.hints import cautions, visible
from sfumato.privacy.unit import is_count_public
from sfumato.report import svg
from sfumato.report.document import figure
from sfumato.report.html import templates
from sfumato.web.desk import FILES, Desk, Run
from sfumato.web.forms import (
    METHODS,
    MOST_ROWS,
    ROLES,
    Fields,
    FormError,
    columns_of,
    fields_of,
    first_fields,
    read_declaration,
    read_number,
    read_settings,
)
from sfumato.web.guard import REPORT_POLICY
from sfumato.web.jobs import BusyError

if TYPE_CHECKING:
    from sfumato.methods.explanation import Explanation
    from sfumato.privacy.ledger import FileLedger

Handler = Callable[[Request], Response]
MEDIA = {".html": "text/html", ".json": "application/json", ".csv": "text/csv"}
MOST_DIGITS = 12
"""Of a number of records to suppose."""
STATIC = {"desk.js": "text/javascript", "desk.css": "text/css"}


class Pages:
    """The pages of one desk; every form on them carries `form_token`, so that it is known to be ours."""

    def __init__(self, desk: Desk, form_token: str) -> None:
        self._desk, self._token = desk, form_token

    def routes(self) -> list[Route]:
        """Where each page is."""
        run = "/runs/{run:str}"
        asked: list[tuple[str, Handler]] = [
            ("/", self.home),
            ("/static/{name:str}", self.static),
            ("/account", self.account),
            ("/declare", self.declaring),
            (run, self.run),
            (f"{run}/forecast", self.forecast),
            (f"{run}/progress", self.progress),
            (f"{run}/report", self.report),
            (f"{run}/files/{{name:str}}", self.download),
            ("/compare", self.compare),
        ]
        sent: list[tuple[str, Handler]] = [
            ("/account", self.open_account),
            ("/declare", self.declare),
            (f"{run}/settings", self.settle),
            (f"{run}/fit", self.fit),
            (f"{run}/stop", self.stop),
            (f"{run}/again", self.again),
            (f"{run}/discard", self.discard),
            (f"{run}/scores", self.scores),
        ]
        return [
            *(Route(path, self._careful(page), methods=["GET"]) for path, page in asked),
            *(Route(path, self._careful(page), methods=["POST"]) for path, page in sent),
            Route("/{rest:path}", self._careful(self.nothing), methods=["GET", "POST"]),
        ]

    def home(self, request: Request) -> Response:
        """The tables of the folder, the account, and what was declared so far."""
        runs = self._desk.runs()
        answer = self._page(
            "home",
            tables=self._desk.tables(),
            runs=[run for run in runs if run.state != "planned"],
            plans=[run for run in runs if run.state == "planned"][:8],
            has_account=self._desk.has_account(),
        )
        answer.background = BackgroundTask(_load_library)  # so that the next page is quick
        return answer

    def static(self, request: Request) -> Response:
        """The style and the script."""
        name = request.path_params["name"]
        if name not in STATIC:
            return self.nothing(request)
        return Response(_static(name), media_type=STATIC[name])

    def account(self, request: Request) -> Response:
        """The ledger; the form that opens it if there is none yet."""
        if not self._desk.has_account():
            return self._page("open_account", fields={}, mistakes=())
        from sfumato.privacy.budget import adaptive_epsilon
        from sfumato.privacy.ledger.admin import show

        ledger = self._desk.ledger()
        delta = ledger.budget.delta or 1e-6
        try:
            sound, verified = True, ledger.verify()
        except BudgetError as error:
            sound, verified = False, str(error)
        return self._page(
            "account", **self._balance(ledger), ledger=ledger, runs=ledger.runs()[::-1], sound=sound, verified=verified,
            text=show(ledger, entries=True), epsilon_of=lambda run: figure(adaptive_epsilon(run.counted, delta)),
        )  # fmt: skip

    def open_account(self, request: Request) -> Response:
        """Open the account."""
        from sfumato.privacy.budget import Budget

        fields: Fields = request.state.form
        try:
            epsilon = read_number(fields, "epsilon", "epsilon")
            delta = read_number({"delta": "1e-6"} | fields, "delta", "delta", below=1.0)
            relation = "replace" if fields.get("number") == "public" else "add-remove"
            protects = "person" if fields.get("protects") == "person" else "record"
            cap = Budget.approximate(epsilon, delta)
            self._desk.open_account(cap, relation, protects, fields.get("purpose", "").strip()[:200])
        except FormError as error:
            return self._page("open_account", 422, fields=fields, mistakes=error.found)
        return _see("/account" if fields.get("then", "") == "" else "/")

    def declaring(self, request: Request) -> Response:
        """The form in which columns are declared."""
        name = request.query_params.get("table", "")
        table = self._desk.table(name)
        if not self._desk.has_account():
            return _see("/account")
        columns = columns_of(table)
        earlier = request.query_params.get("from")
        fields = first_fields(columns) if earlier is None else fields_of(self._desk.run(earlier).said, columns)
        return self._declaration_page(name, columns, fields)

    def declare(self, request: Request) -> Response:
        """Read the form; the plan comes next."""
        fields: Fields = request.state.form
        name = fields.get("table", "")
        columns = columns_of(self._desk.table(name))
        if fields.get("columns") != _names_of(columns):
            raise InputError("table: its columns have changed since the form was made; choose it again.")
        try:
            said = read_declaration(name, columns, fields, self._desk.terms())
            run = self._desk.declare(said)
            self._desk.explain(run)  # refuses what the estimator cannot be asked, and a table that cannot be read
        except FormError as error:
            return self._declaration_page(name, columns, fields, error.found)
        except SfumatoError as error:
            return self._declaration_page(name, columns, fields, [("estimator", str(error))])
        return _see(f"/runs/{run.id}")

    def _declaration_page(self, name: str, columns: Any, fields: Mapping[str, str], mistakes: Any = ()) -> Response:
        return self._page(
            "declare", 422 if mistakes else 200, table=name, columns=columns, fields=fields, mistakes=mistakes,
            names=_names_of(columns), by_column=len(columns) <= MOST_ROWS, roles=ROLES, methods=METHODS,
            terms=self._desk.terms(),
        )  # fmt: skip

    def run(self, request: Request) -> Response:
        """A run: its plan, its progress or its result."""
        run = self._run(request)
        match run.state:
            case "planned":
                return self._planned_page(run, request.query_params.get("n", ""))
            case "running":
                stopping = "stopping" in request.query_params
                return self._page("running", run=run, progress=self._desk.progress(run), stopping=stopping)
            case "stopped":
                return self._page("stopped", run=run, progress=self._desk.progress(run))
        return self._done_page(run)

    def _planned_page(self, run: Run, n: str) -> Response:
        """The plan; the columns once more if the table is not what it was."""
        try:
            self._desk.explain(run)
        except SfumatoError as error:
            columns = columns_of(self._desk.table(run.said.table))
            return self._declaration_page(
                run.said.table, columns, fields_of(run.said, columns), [("estimator", str(error))]
            )
        return self._plan_page(run, n)

    def _plan_page(self, run: Run, n: str, fields: Mapping[str, str] | None = None, mistakes: Any = ()) -> Response:
        plan = self._desk.explain(run, _size(n))
        own = self._desk.explain(run)
        return self._page(
            "plan", 422 if mistakes else 200, run=run, plan=plan, own=own, mistakes=mistakes, fields=fields or {},
            command=self._desk.command(run), cautions=self._cautions(own), **self._expected(plan), **self._room(own),
        )  # fmt: skip

    def forecast(self, request: Request) -> Response:
        """What to expect at another budget and size: a part of the plan's page, for the sliders."""
        run = self._run(request)
        query = request.query_params
        said = read_settings(run.said, {"picture": "on"} | dict(query))
        plan = self._desk.explain(Run(said, run.folder, run.state), _size(query.get("n", "")))
        return self._page("forecast", plan=plan, **self._expected(plan, advice=False), **self._room(plan))

    def settle(self, request: Request) -> Response:
        """Another budget for the same study."""
        run, fields = self._run(request), request.state.form
        n = fields.get("n", "").strip()
        try:
            if n and _size(n) is None:
                raise FormError([("n", "Number of records: write a whole number from 1 on.")])
            other = self._desk.declare(read_settings(run.said, fields))
            self._desk.explain(other)
        except FormError as error:
            return self._plan_page(run, "", fields, error.found)
        except SfumatoError as error:
            return self._plan_page(run, "", fields, [("epsilon", str(error))])
        return _see(f"/runs/{other.id}" + (f"?{urlencode({'n': n})}" if n else ""))

    def fit(self, request: Request) -> Response:
        """Start the fit; asked for twice, it is still one."""
        run = self._run(request)
        if run.state == "planned":
            try:
                if self._cautions(self._desk.explain(run)) and "sure" not in request.state.form:
                    raise FormError([("sure", "Tick the box to confirm what is unusual here.")])
                self._desk.start(run)
            except FormError as error:
                return self._plan_page(run, "", mistakes=error.found)
            except (BudgetError, BusyError) as error:
                return self._plan_page(run, "", mistakes=[("fit", str(error))])
        return _see(f"/runs/{run.id}")

    def progress(self, request: Request) -> Response:
        """How far a fit has come."""
        run = self._run(request)
        now = self._desk.progress(run)
        return JSONResponse({"state": run.state, "made": now.made, "planned": now.planned, "last": visible(now.last)})

    def stop(self, request: Request) -> Response:
        """Stop a fit."""
        run = self._run(request)
        self._desk.bench.stop(run.id)
        return _see(f"/runs/{run.id}?stopping=1")

    def again(self, request: Request) -> Response:
        """Plan the same once more; only the fit that follows costs."""
        return _see(f"/runs/{self._desk.declare_again(self._run(request)).id}")

    def discard(self, request: Request) -> Response:
        """Forget a plan."""
        self._desk.discard(self._run(request))
        return _see("/")

    def _done_page(self, run: Run) -> Response:
        fitted = _fitted(run)
        balance = self._balance(self._desk.ledger()) if self._desk.has_account() else {}
        self._desk.make_report(run)
        return self._page(
            "done", run=run, verdict=getattr(fitted, "verdict_", None), guarantee=fitted.ledger_.guarantee, files=FILES,
            command=self._desk.command(run), account=balance, notes=run.messages("note"),
        )  # fmt: skip

    def report(self, request: Request) -> Response:
        """The report, as it was written: in a frame of our page, or alone."""
        page = self._desk.make_report(self._done(request)).read_bytes()
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})

    def download(self, request: Request) -> Response:
        """A file of the results."""
        run, name = self._done(request), request.path_params["name"]
        if name not in FILES:
            return self.nothing(request)
        path = self._desk.make_report(run) if name == "report.html" else run.model.parent / name
        kind = MEDIA[path.suffix]
        return _attached(path.read_bytes(), f"{run.said.response or run.said.estimator}-{name}", kind)

    def scores(self, request: Request) -> Response:
        """The coordinates of the table's records. They are not private, which the page says beside the button."""
        run = self._done(request)
        with self._desk.scores(run) as path:
            return _attached(path.read_bytes(), f"{run.said.response or run.said.estimator}-scores.csv", "text/csv")

    def compare(self, request: Request) -> Response:
        """Two runs side by side."""
        from sfumato.report.agreement import compare_fits

        chosen = [self._desk.run(name) for name in request.query_params.getlist("run")]
        if len(chosen) != 2 or any(run.state != "done" for run in chosen):
            raise InputError("compare: choose two runs that are done.")
        fits = [_fitted(run) for run in chosen]
        return self._page("compare", pairs=list(zip(chosen, fits, strict=True)), agreement=compare_fits(*fits))

    def nothing(self, request: Request) -> Response:
        """There is no such page."""
        return self._page("message", 404, heading="There is no such page", sentence="Go back to the list of tables.")

    def _run(self, request: Request) -> Run:
        return self._desk.run(request.path_params["run"])

    def _done(self, request: Request) -> Run:
        run = self._run(request)
        if run.state != "done":
            raise InputError("run: it has no results.")
        return run

    def _cautions(self, plan: "Explanation") -> tuple[str, ...]:
        budget, public = plan.budget, is_count_public(plan.relation, plan.rows_per_person)
        return cautions(budget.epsilon or 0.0, budget.delta or 0.0, plan.n_samples if public else None)

    def _expected(self, plan: "Explanation", *, advice: bool = True) -> dict[str, Any]:
        if not plan.has_forecast:
            return {"expectations": [], "advice": []}
        return {"expectations": plan.expectations(), "advice": plan.advice() if advice else []}

    def _balance(self, ledger: "FileLedger") -> dict[str, Any]:
        """What the account has, had and has left."""
        left = ledger.remaining()
        return {"cap": ledger.budget, "spent": ledger.spent(ledger.budget.delta or 1e-6), "left": left}

    def _room(self, plan: "Explanation") -> dict[str, Any]:
        """Whether the account has room for a plan, and what it would leave."""
        from sfumato.privacy.budget import remaining_budget

        ledger = self._desk.ledger()
        try:
            ledger.admit(plan.plan)
            refusal = ""
        except BudgetError as error:
            refusal = str(error)
        after = None if refusal else remaining_budget(ledger.budget, (*ledger.events, *plan.plan.events))
        return {**self._balance(ledger), "after": after, "refusal": refusal}

    def _page(self, name: str, status: int = 200, **content: Any) -> HTMLResponse:
        common = {"form_token": self._token, "folder": self._desk.folder.name, "account_file": self._desk.account.name}
        if "mistakes" in content:  # fields that were not filled in are empty
            content |= {"fields": defaultdict(str, content["fields"]), "wrong": defaultdict(str, content["mistakes"])}
        page = templates("sfumato.web", "templates").get_template(f"{name}.html.jinja").render(**common, **content)
        return HTMLResponse(svg.printable(page), status)

    def _careful(self, page: Handler) -> Handler:
        """The same page; of what goes wrong one sentence is shown, and of what nobody foresaw not even its text."""

        def careful(request: Request) -> Response:
            try:
                return page(request)
            except SfumatoError as error:
                status = 409 if isinstance(error, BudgetError) else 422
                return self._page("message", status, heading="That cannot be done", sentence=str(error))
            except OSError as error:
                sentence = f"A file cannot be read or written ({error.strerror})."
                return self._page("message", 500, heading="That cannot be done", sentence=sentence)
            except Exception as error:
                return PlainTextResponse(describe_unexpected(error) + "\n", 500)

        return careful


def _load_library() -> None:
    """What the later pages need and the first does not."""
    import sfumato.methods.sir
    import sfumato.privacy.ledger
    import sfumato.sources.files  # noqa: F401


def _size(text: str) -> int | None:
    """A number of records, if the text is one."""
    return int(text) or None if text.isdecimal() and len(text) <= MOST_DIGITS else None


def _fitted(run: Run) -> Any:
    from sfumato.model import load_model

    return load_model(run.model)


def _names_of(columns: Any) -> str:
    """What a form remembers of the columns it was made for."""
    return hashlib.sha256(json.dumps([column.name for column in columns]).encode()).hexdigest()[:16]


def _see(address: str) -> Response:
    """Look there: so that a reload repeats no form."""
    return RedirectResponse(address, 303)


def _attached(content: bytes, name: str, kind: str) -> Response:
    safe = "".join(c if c.isalnum() or c in "-_. " else "_" for c in name)
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(safe)}"}
    return Response(content, media_type=kind, headers=headers)


@cache
def _static(name: str) -> str:
    """A file of the app; the style begins with that of the report."""
    own = resources.files("sfumato.web").joinpath("static", name).read_text(encoding="utf-8")
    if name != "desk.css":
        return own
    return templates().get_template("report.css.jinja").render(ramp=svg.RAMP) + own
