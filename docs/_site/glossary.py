"""Links from the first use of a word on a page to the glossary, and names of options that stay on one line."""

import posixpath
import re
from collections.abc import Iterator

PAGE = "glossary.md"
HEADING = re.compile(r"^## (.+)$", re.M)
OPTION = re.compile(r"(?<!`)`(--?[a-z][\w-]*(?: [\w.-]+)?)`(?!`)(?!\{)")
# Where a word is no plain word: front matter, blocks of code, code, headings, pictures, links, tags, deep indents.
PROTECTED = re.compile(
    r'<div class="output">.*?</div><!-- end of output -->|'
    r"\A---\n.*?^---$|^ *```.*?^ *```[^\n]*$|<!--.*?-->|`[^`\n]+`|^#[^\n]*$|^(?:!!!|\?\?\?)[^\n]*$|^ {4}[^\n]*$"
    r"|!?\[(?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*\]\([^)]*\)|<[^>\n]+>|\{[^}\n]*\}|https?://\S+",
    re.M | re.S,
)


def words(glossary: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """How each word of the glossary is found, and its anchor: a heading names one word, or several with commas."""
    for heading in HEADING.findall(glossary):
        anchor = re.sub(r"[^\w]+", "-", heading.lower()).strip("-")
        for name in heading.split(", "):
            spelled = r"[-\s]".join(map(re.escape, re.split("[- ]", name)))
            capital = "" if re.search(r"\w[A-Z]", name) else "(?i)"  # zCDP is written so everywhere
            yield re.compile(rf"{capital}(?<![\w-]){spelled}(?:e?s)?(?![\w-])"), anchor


def linked(markdown: str, here: str, glossary: str) -> str:
    """The page with the first use of each word of the glossary made a link to it."""
    if here == PAGE:
        return markdown
    page = posixpath.relpath(PAGE, posixpath.dirname(here) or ".")
    done: set[str] = set()
    for pattern, anchor in sorted(words(glossary), key=lambda word: -len(word[0].pattern)):  # the longest word first
        parts = _parts(markdown)
        for i, part in enumerate(parts):
            if i % 2 == 0 and anchor not in done and (match := pattern.search(part)):
                link = f"[{match[0]}]({page}#{anchor}){{.term}}"
                parts[i] = part[: match.start()] + link + part[match.end() :]
                done.add(anchor)
        markdown = "".join(parts)
    return markdown


def unbroken(markdown: str) -> str:
    """The page with names of options marked, so that no line ends within one."""
    fences = re.split(r"(^ *```.*?^ *```[^\n]*$)", markdown, flags=re.M | re.S)
    fences[::2] = [OPTION.sub(r"`\1`{.option}", part) for part in fences[::2]]
    return "".join(fences)


def _parts(markdown: str) -> list[str]:
    """Plain text at even places, what is protected at odd ones."""
    parts, end = [], 0
    for match in PROTECTED.finditer(markdown):
        parts += [markdown[end : match.start()], match[0]]
        end = match.end()
    return [*parts, markdown[end:]]
