"""Build the site: gather its pages in one folder, then let Zensical make it, with warnings as errors.

Beyond the pages under docs the site has measured results, project pages, the command line, and notebooks, which are
run. Links between files of the repository are written so that they work in the repository; here they are turned to the
pages of the site. A link to a file that exists but has no page becomes plain text; one to nothing stays, and fails the
build.

    python docs/_site/build.py [FOLDER]      # FOLDER/site/index.html; without one: build/site/index.html
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import glossary
import notebooks
import pictures
import yaml
from command_line import reference
from public_names import pages

ROOT = Path(__file__).parents[2]
RESULTS = "benchmarks/results"
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
ADDRESS = re.compile(r'<(?:a|img|link|script|source|iframe)\b[^>]*?\s(?:href|src|srcset)="([^"]*)"')
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$|`[^`\n]+`(?!\]))", re.M | re.S)


def borrowed() -> dict[str, str]:
    """Pages and pictures of the site that live elsewhere in the repository: address on the site, path in it."""
    results = sorted(path for path in (ROOT / RESULTS).iterdir() if path.suffix in (".md", ".svg", ".png"))
    pages = {f"results/{path.name}": f"{RESULTS}/{path.name}" for path in results}
    return pages | {f"project/{name}": name for name in PROJECT if (ROOT / name).exists()}


@cache
def made() -> dict[str, str]:
    """Pages made from the code: address on the site, text."""
    titles = {address: _title(ROOT / path) for address, path in borrowed().items() if path.startswith(RESULTS)}
    rows = [f"* [{title}]({posixpath.basename(at)})" for at, title in titles.items() if at.endswith(".md")]
    intro = (
        "# Measured results\n\nEvery number in these pages comes from a study here, with the command that made it.\n"
    )
    return pages() | {"reference/cli.md": reference(), "results/index.md": "\n".join([intro, *rows, ""])}


def build(folder: Path) -> str:
    """Make `folder`/site; what is wrong with it, or nothing."""
    gather(folder / "pages")
    settings = folder / "mkdocs.yml"
    settings.write_text(json.dumps(configuration(folder / "pages"), indent=1), encoding="utf-8")  # JSON is YAML
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(settings)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or "griffe:" in done.stderr:  # a docstring that cannot be read is no error to Zensical
        return COLOUR.sub("", done.stdout + done.stderr)
    return "\n".join(lost(folder / "site"))


def lost(site: Path) -> Iterator[str]:
    """Addresses within the site that lead nowhere: pictures and absolute ones too, which Zensical does not try."""
    for page in sorted(site.rglob("*.html")):
        for address in sorted(set(ADDRESS.findall(page.read_text(encoding="utf-8")))):
            path = unquote(urlsplit(address).path)
            if path and not urlsplit(address).scheme and not (page.parent / path).exists() and page.name != "404.html":
                yield f"{page.relative_to(site)}: {address}"


def gather(folder: Path) -> None:
    """Write everything that the site shows to `folder`."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("_site", "*.py"))
    notebooks.write(notebooks.run_all(), folder / "notebooks")
    for address, path in borrowed().items():
        (folder / address).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / path, folder / address)
    for address, text in made().items():
        (folder / address).parent.mkdir(exist_ok=True)
        (folder / address).write_text(text, encoding="utf-8")
    words = (folder / glossary.PAGE).read_text(encoding="utf-8")
    for page in folder.rglob("*.md"):
        here = page.relative_to(folder).as_posix()
        text = page.read_text(encoding="utf-8")
        if here not in made():
            text = pictures.both(turned(text, here))
        if (ROOT / "docs" / here).exists() or here.startswith("notebooks/"):
            text = glossary.linked(text, here, words)
        page.write_text(glossary.unbroken(text), encoding="utf-8")
    for drawing in list(folder.rglob("*.svg")):
        svg = drawing.read_text(encoding="utf-8")
        drawing.with_name(f"{drawing.stem}-dark.svg").write_text(pictures.dark(svg), encoding="utf-8")


def configuration(pages: Path) -> dict[str, Any]:
    """The settings of mkdocs.yml for gathered pages: the patterns of the navigation filled in, places made absolute."""
    settings: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    found = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    named = set(_leaves(settings["nav"]))
    settings["nav"] = _filled(settings["nav"], sorted(found - named))
    shown = set(_leaves(settings["nav"]))
    if found != shown:  # Zensical does not look
        sys.exit(f"mkdocs.yml: nav lacks {sorted(found - shown)} and has no page for {sorted(shown - found)}")
    docstrings = next(each for each in settings["plugins"] if "mkdocstrings" in each)["mkdocstrings"]
    docstrings["custom_templates"] = str(ROOT / docstrings["custom_templates"])
    python = docstrings["handlers"]["python"]
    python["paths"] = [str(ROOT / path) for path in python["paths"]]
    return settings | {"docs_dir": pages.name, "site_dir": "site"}


def turned(markdown: str, here: str) -> str:
    """The text of a page with its links between files of the repository turned to pages of the site."""
    source = posixpath.dirname(borrowed().get(here, f"docs/{here}"))
    parts = FENCE.split(markdown)  # links in code stay as they are
    parts[::2] = [LINK.sub(lambda match: _turned(match, source, here), part) for part in parts[::2]]
    return "".join(parts)


def _turned(match: re.Match[str], source: str, here: str) -> str:
    mark, label, target, anchor = match.groups()
    path = posixpath.normpath(posixpath.join(source, target))
    if ":" in target or not (ROOT / path).exists():
        return match[0]
    address = _address(path)
    if address is None:
        return label
    return f"{mark}[{label}]({posixpath.relpath(address, posixpath.dirname(here) or '.')}{anchor or ''})"


def _address(path: str) -> str | None:
    """Where a file of the repository is on the site."""
    if path in ("README.md", "."):
        return "index.md"
    if path == RESULTS:
        return "results/index.md"
    if path.startswith("docs/notebooks/"):
        return str(Path(path.removeprefix("docs/")).with_suffix(".md"))
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return next((address for address, origin in borrowed().items() if origin == path), None)


def _leaves(nav: Any) -> Iterator[str]:
    for item in nav:
        for value in item.values() if isinstance(item, dict) else [item]:
            yield from [value] if isinstance(value, str) else _leaves(value)


def _filled(nav: Any, rest: list[str]) -> list[Any]:
    filled: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            filled += [page for page in rest if fnmatch(page, item)]
        elif isinstance(item, dict):
            (title, value), *_ = item.items()
            if isinstance(value, str) and "*" in value:
                found = [page for page in rest if fnmatch(page, value)]
                filled += [{title: sorted(found, key=lambda page: not page.endswith("index.md"))}] if found else []
            else:
                filled.append({title: value if isinstance(value, str) else _filled(value, rest)})
        else:
            filled.append(item)
    return filled


def _title(path: Path) -> str:
    if path.suffix != ".md":
        return path.name
    return next((line[2:] for line in path.read_text("utf-8").splitlines() if line.startswith("# ")), path.stem)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()) or 0)
