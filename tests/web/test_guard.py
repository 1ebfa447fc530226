"""Attacks on the desk: what a stranger, another page or another machine gets."""

import socket
from urllib.parse import urlencode

import pytest
from tests.web.served import Client, serving

from sfumato.errors import InputError
from sfumato.web.server import Server, _hosts

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PAGES = ["/", "/account", "/declare?table=patients.csv", "/runs/0123456789abcdef", "/static/desk.css", "/none"]


@pytest.mark.parametrize("page", PAGES)
def test_without_the_cookie_there_is_no_page(page, served):
    assert Client(served.link).ask("GET", page).status == 403


@pytest.mark.parametrize("cookie", ["sfumato=x", "; ;=", "sfumato-%s=wrong", 'sfumato-%s="'])
def test_a_wrong_cookie_opens_nothing(cookie, served):
    stranger = Client(served.link)
    stranger.cookie = cookie.replace("%s", served.host.partition(":")[2])
    assert stranger.get("/").status == 403


def test_the_link_works_once(served):
    assert served.ask("GET", served.link.removeprefix(served.origin)).status == 403
    assert served.get("/").status == 200


def test_a_wrong_token_does_not_use_up_the_link(folder):
    with serving(folder) as (_, client):
        assert client.ask("GET", "/enter?token=wrong").status == 403
        assert client.ask("GET", "/enter").status == 403
        assert client.enter().get("/").status == 200


def test_the_cookie_is_strict_and_unseen_by_scripts(folder):
    with serving(folder) as (_, client):
        said = client.ask("GET", client.link.removeprefix(client.origin)).headers["Set-Cookie"]
    assert "HttpOnly" in said and "SameSite=Strict" in said and "Path=/" in said


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"]
)
def test_another_name_for_this_machine_is_refused(host, served):
    assert served.ask("GET", "/", headers={"Host": host}).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "", None])
def test_a_form_of_another_page_is_refused(origin, served):
    body = urlencode({"form-token": served.form_token()}).encode()
    headers = FORM if origin is None else FORM | {"Origin": origin}
    assert served.ask("POST", "/runs/0123456789abcdef/fit", body, headers).status == 403


def test_what_the_browser_says_of_another_site_is_believed(served):
    assert served.post("/account", **{"Sec-Fetch-Site": "cross-site"}).status == 403


@pytest.mark.parametrize("token", ["", "0" * 64, "\u00e9"])
def test_a_form_without_our_token_is_refused(token, served):
    body = urlencode({"form-token": token}).encode()
    assert served.ask("POST", "/account", body, FORM | {"Origin": served.origin}).status == 403


def test_a_huge_upload_is_refused_before_it_is_read(served):
    headers = FORM | {"Origin": served.origin, "Content-Length": str(10**12)}
    name, _, port = served.host.partition(":")
    with socket.create_connection((name, int(port)), timeout=30) as line:
        asked = {"Host": served.host, "Cookie": served.cookie} | headers
        line.sendall(
            b"POST /declare HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in asked.items()).encode() + b"\r\n"
        )
        assert line.recv(200).startswith(b"HTTP/1.1 413")


def test_a_huge_upload_of_unknown_length_is_cut_off(served):
    name, _, port = served.host.partition(":")
    asked = {
        "Host": served.host,
        "Cookie": served.cookie,
        "Origin": served.origin,
        "Transfer-Encoding": "chunked",
    } | FORM
    with socket.create_connection((name, int(port)), timeout=30) as line:
        line.sendall(
            b"POST /declare HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in asked.items()).encode() + b"\r\n"
        )
        block = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        answer = b""
        try:
            for _ in range(64):
                line.sendall(block)
            answer = line.recv(200)
        except ConnectionError:  # cut off in the middle
            answer = answer or b"HTTP/1.1 413"
        assert answer.startswith(b"HTTP/1.1 413")
    assert served.get("/").status == 200


def test_too_many_fields_are_refused(served):
    body = urlencode({"form-token": served.form_token()} | {f"f{i}": "" for i in range(6000)}).encode()
    assert served.ask("POST", "/declare", body, FORM | {"Origin": served.origin}).status == 403


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "text/plain"])
def test_only_plain_forms_are_read(kind, served):
    assert served.ask("POST", "/declare", b"{}", {"Content-Type": kind, "Origin": served.origin}).status == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(method, served):
    assert served.ask(method, "/").status == 405


@pytest.mark.parametrize(
    "table",
    [
        "../secret.csv",
        "/etc/passwd",
        "..%2Fsecret.csv",
        "sfumato/account.jsonl",
        "linked.csv",
        "",
        "patients.csv\0",
        ".",
    ],
)
def test_no_path_leads_out_of_the_folder(table, served):
    secret, link = served.folder.parent / "secret.csv", served.folder / "linked.csv"
    secret.write_text("a,b\n1,2\n")
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    answer = served.get("/declare?" + urlencode({"table": table}))
    assert answer.status == 422 and "no such table" in answer.text
    assert "linked.csv" not in served.get("/").text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..%2f..%2fx",
        "/runs/../../etc",
        "/static/..%2fpages.py",
        "/static/%2e%2e/pages.py",
        "/runs/x/files/started",
    ],
)
def test_no_address_leads_to_other_files(path, served):
    assert served.get(path).status in (404, 422)


@pytest.mark.parametrize("page", PAGES)
def test_every_answer_forbids_what_it_does_not_need(page, served):
    headers = served.get(page).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin" and headers["Server"] is None


def test_refusals_say_so_too(served):
    refused = Client(served.link).get("/")
    assert refused.headers["Cache-Control"] == "no-store"
    assert refused.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_it_listens_on_this_machine_alone(tmp_path):
    with pytest.raises(InputError, match="can be reached from other machines"):
        Server(tmp_path, host="0.0.0.0", port=0)
    server = Server(tmp_path, port=0)
    assert server._socket.getsockname()[0] == "127.0.0.1"
    server._socket.close()


def test_nothing_is_logged(folder):
    with serving(folder) as (process, client):
        client.enter().get("/declare?table=patients.csv")
        client.get("/declare?table=secret-name.csv")
        process.terminate()
        _, said = process.communicate(timeout=40)
    assert "secret-name" not in said and "GET" not in said and client.cookie.partition("=")[2] not in said


def test_a_desk_on_every_address_is_called_by_that_of_this_machine():
    assert list(_hosts("0.0.0.0", 8765, ())) == ["127.0.0.1:8765", "localhost:8765"]
