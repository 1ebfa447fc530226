"""The strokes the charts are drawn with: elements, text, lines, axes and colours, as SVG strings.

Colours are CSS variables with fallbacks, so the page decides between light, dark and print. Every string
passes through `tag` or `escape`, the only places where markup is made.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, takewhile

from sfumato.report.document import figure

WIDTH = 440.0
ROUNDS = 3
"""Times that labels which look the same are cut at their beginning."""
INK, MUTED, RULE = "currentColor", "var(--muted,#6b6861)", "var(--rule,#d9d4c7)"
BAR, PLAIN = "var(--bar,#559aab)", "var(--plain,#b9b3a4)"
# Sand to indigo in equal steps of OKLab lightness; the page turns the order round in the dark.
# fmt: off
RAMP = (
    "#faf3e3", "#e6e6cf", "#d0d9bd", "#b8cdaf", "#9fc1a4", "#85b59c", "#6ba896", "#529a92",
    "#3b8c8e", "#277d8a", "#196d84", "#145d7c", "#164d72", "#1a3e66", "#1c2f58", "#1b2049",
)
# fmt: on
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML and HTML do not allow
_HUGE = 1e300

Attribute = str | float
Scale = Callable[[float], float]


def printable(text: str) -> str:
    """Replace the characters that no document may hold (control characters, lone surrogates) by a mark."""
    return _FORBIDDEN.sub("\ufffd", text)


def escape(text: str) -> str:
    """Make any text safe inside markup, quotes included.

    >>> escape('<b>"x"</b>')
    '&lt;b&gt;&quot;x&quot;&lt;/b&gt;'
    """
    return html.escape(printable(text))


def tag(name: str, content: str = "", /, **attributes: Attribute) -> str:
    """Write one element; `content` is markup already, attributes are escaped, floats are coordinates.

    >>> tag("rect", x=1.0, data_value="0.5", class_="bar")
    '<rect x="1" data-value="0.5" class="bar"/>'
    """
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{_written(value)}"' for key, value in attributes.items())
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def frame(key: str, height: float, title: str, desc: str, marks: Iterable[str], **attributes: Attribute) -> str:
    """Frame the marks as an image with a name and a description for those who do not see it."""
    words = tag("title", escape(title), id=f"{key}-title") + tag("desc", escape(desc), id=f"{key}-desc")
    outer: dict[str, Attribute] = {
        "class": f"chart {key.split('-')[0]}",
        "role": "img",
        "viewBox": f"0 0 {WIDTH:g} {height:g}",
        "aria-labelledby": f"{key}-title",
        "aria-describedby": f"{key}-desc",
        "font-size": "12",
    }
    return tag("svg", words + "".join(marks), **outer, **attributes)


def text(content: str, x: float, y: float, anchor: str = "start", fill: str = INK, **attributes: Attribute) -> str:
    """Write one line of text with its baseline at y."""
    return tag("text", escape(content), x=x, y=y, text_anchor=anchor, style=f"fill:{fill}", **attributes)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, **attributes: Attribute) -> str:
    """Draw one line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, style=f"stroke:{stroke}", **attributes)


def axis_below(low: float, high: float, x: Scale, top: float, bottom: float) -> str:
    """Draw ticks with labels below `bottom`, and grid lines up to `top`."""
    places = ticks(low, high)
    if room([label + "  " for _, label in places], total=True) > abs(x(high) - x(low)):
        places = ticks(low, high, most=3)
    marks = [
        line(x(at), top, x(at), bottom + 4, RULE) + text(label, x(at), bottom + 17, "middle", MUTED)
        for at, label in places
    ]
    return tag("g", "".join(marks), class_="axis")


def axis_beside(low: float, high: float, y: Scale, left: float, right: float) -> str:
    """Draw ticks with labels left of `left`, and grid lines up to `right`."""
    marks = [
        line(left - 4, y(at), right, y(at), RULE) + text(label, left - 8, y(at) + 4, "end", MUTED)
        for at, label in ticks(low, high)
    ]
    return tag("g", "".join(marks), class_="axis")


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Choose at most `most` round numbers in [low, high], and write each with as many digits as it needs.

    >>> ticks(0.0, 1.1, most=3)
    [(0.0, '0'), (0.5, '0.5'), (1.0, '1')]
    """
    low, high = tame(low), tame(high)
    rough = max((high - low) / most, 1e-300)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10, 20) if _inside(low, high, power * k) <= most)
    first = math.ceil(low / step)
    places = [(first + k) * step for k in range(_inside(low, high, step))]
    widest = max(map(abs, places), default=0.0)
    digits = 2 + max(0, math.ceil(math.log10(max(widest / step, 1.0))))
    return [(at, figure(at, digits, trim=True)) for at in places]


def room(labels: Iterable[str], *, total: bool = False) -> float:
    """Estimate, rather too wide than too narrow, the space that labels take: the widest, or all in a row."""
    lengths = [7.5 * len(label) for label in labels]
    return sum(lengths) if total else max(lengths, default=0.0)


def scale(low: float, high: float, start: float, stop: float) -> Scale:
    """Map [low, high] linearly to [start, stop]; what lies outside is put on the border."""
    low, high = tame(low), tame(high)

    def place(value: float) -> float:
        share = (tame(value) - low) / (high - low) if high > low else 0.0
        return start + (stop - start) * min(max(share, 0.0), 1.0)

    return place


def shorten(label: str, width: float) -> str:
    """Cut a label to a width in chart units, and end it with an ellipsis if anything was cut.

    >>> shorten("systolic blood pressure", 100), shorten("age", 100)
    ('systolic bloo…', 'age')
    """
    ends = list(accumulate(map(_letter_width, label)))
    if not ends or ends[-1] <= width:
        return label
    return label[: bisect_right(ends, width - 12)].rstrip() + "…"


def shorten_each(labels: Sequence[str], width: float) -> list[str]:
    """Cut labels so that they can still be told apart: of those that look the same the words they begin with go first.

    >>> shorten_each(["systolic blood pressure, left", "systolic blood pressure, right", "age"], 100)
    ['…left', '…right', 'age']
    """
    rests = list(labels)
    for _ in range(ROUNDS):
        short = [shorten(rest, width) for rest in rests]
        same = [{rest for rest, other in zip(rests, short, strict=True) if other == one} for one in short]
        rests = [_without_beginning(rest, others) for rest, others in zip(rests, same, strict=True)]
    return [shorten(rest, width) for rest in rests]


def _without_beginning(label: str, same: set[str]) -> str:
    """A label without the words that all of these labels begin with, if there are others."""
    alike = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*same, strict=False)))
    if len(same) == 1 or alike < 2:
        return label
    start = max((at + 1 for at in range(1, min(alike, len(label) - 1)) if not label[at].isalnum()), default=alike)
    return "…" + label[start:].lstrip()


def level(step: int) -> str:
    """Name one step of the ramp, from 0 (nothing) to 15 (most)."""
    return f"var(--ramp-{step},{RAMP[step]})"


def shade(item: int, count: int) -> str:
    """Name the colour of one item of `count`, spread over the middle of the ramp."""
    return level(3 + round(10 * item / max(count - 1, 1)))


def tame(value: float) -> float:
    """Make a value drawable: not finite becomes 0, and no sum of two may overflow."""
    return min(max(float(value), -_HUGE), _HUGE) if math.isfinite(value) else 0.0


def exact(value: float | None) -> str:
    """Write a number so that it reads back bit for bit; empty if there is none."""
    return repr(float(value)) if value is not None and math.isfinite(value) else ""


def _inside(low: float, high: float, step: float) -> int:
    return max(0, math.floor(high / step) - math.ceil(low / step) + 1)


def _letter_width(letter: str) -> float:
    """Estimate how wide a letter is at 12 units, for a wide font such as DejaVu Sans or Verdana."""
    if unicodedata.combining(letter):
        return 0.0
    if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 12.0
    if letter in " iljtfrI.,:;'|!()[]":
        return 4.8
    return 9.0 if letter.isupper() else 7.6


def _written(value: Attribute) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
