"""The guard: who may ask for anything at all, and what every answer says about itself.

A web page anywhere can make a browser send requests to this machine. So a request is answered only if it names this
server (Host: no other name was made to point here), carries the cookie that the link from the terminal was exchanged
for and, where it changes anything, comes from one of our own pages (Origin) with the token that only they hold. Bodies
are small and of one kind. Nothing is kept by the browser, and our pages may load nothing but what is served here.
"""

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 2**20
"""Bytes of a form, at the most."""
MOST_FIELDS = 5_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
"""Of reports, which carry their own style and are shown in a frame of our pages."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # no-referrer would make the browser hide the Origin of our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ENTER = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>sfumato</title><meta http-equiv="refresh" content="0;url=/"></head>
<body><p><a href="/">Go on to sfumato</a></p></body></html>
"""
"""A page, not a redirect: browsers hold strict cookies back while they follow a link from elsewhere."""


class Keys:
    """What opens the door: a link that works once, and the cookie that it is exchanged for."""

    def __init__(self, port: int) -> None:
        self.token: str | None = secrets.token_urlsafe(32)
        self.cookie = f"sfumato-{port}"
        self._session = secrets.token_urlsafe(32)

    @property
    def form_token(self) -> str:
        """What our own forms carry."""
        return hmac.digest(self._session.encode(), b"form", "sha256").hex()

    def exchange(self, token: str) -> str | None:
        """The cookie for the token, the first time."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = None
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"

    def knows(self, header: str) -> bool:
        """Whether a Cookie header has the cookie."""
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._session.encode())


class Guard:
    """Stands before the app. Forms that it lets through are in ``request.state.form``."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: frozenset[str], scheme: str = "http") -> None:
        self._app, self._keys, self._hosts = app, keys, hosts
        self._origins = frozenset(f"{scheme}://{host}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _sealed(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif scope["method"] == "POST":
            await self._answer_form(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is not answered; None if it is."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _no(421, "This is not the name of this server.")
        if scope["path"] == "/enter" and scope["method"] == "GET":
            return self._enter(scope)
        if not self._keys.knows(headers.get("cookie", "")):
            return _no(403, "Open the link that 'sfumato serve' printed; it lets in one browser, once.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _no(405, "Only GET and POST are answered.")
        return self._refuse_form(headers) if scope["method"] == "POST" else None

    def _refuse_form(self, headers: Headers) -> Response | None:
        if headers.get("origin") not in self._origins or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _no(403, "This form was not sent from a page of this server.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return _no(415, "Only plain forms are read.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            return _no(413, "The form is too large.")
        return None

    def _enter(self, scope: Scope) -> Response:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        cookie = self._keys.exchange(given)
        if cookie is None:
            return _no(403, "This link was used already, or is none; start 'sfumato serve' again for a new one.")
        return HTMLResponse(ENTER, headers={"Set-Cookie": cookie})

    async def _answer_form(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            await _no(413, "The form is too large.")(scope, receive, send)
            return
        form = _fields(body)
        token = form.pop("form-token", "") if form is not None else ""
        if form is None or not hmac.compare_digest(token.encode(), self._keys.form_token.encode()):
            await _no(403, "The form is out of date; reload the page and fill it in again.")(scope, receive, send)
            return
        scope.setdefault("state", {})["form"] = form
        await self._app(scope, receive, send)


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None if it is too large, of which no more is read."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _fields(body: bytes) -> dict[str, str] | None:
    """The fields of a form, the last of each name; None if it is none."""
    try:
        text = body.decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError:
        return None


def _no(status: int, sentence: str) -> Response:
    headers = {"Connection": "close"} if status == 413 else None
    return PlainTextResponse(sentence + "\n", status, headers)


def _sealed(send: Send) -> Send:
    """The same, with what every answer says about itself; an answer may have a policy of its own."""

    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sealed
