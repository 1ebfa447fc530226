"""What to expect of a plan, laid out for the terminal."""

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from sfumato.methods.explanation import Explanation


def show_expectations(console: Console, plan: "Explanation") -> None:
    """Expected loss by assumed signal, and advice; nothing where there is no forecast."""
    if not plan.has_forecast:
        return
    title = f"Expected distance to the true directions, by {plan.meaning}"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for heading in ("signal", "expected loss", "without privacy", "random directions"):
        table.add_column(heading, justify="right")
    for row in plan.expectations():
        table.add_row(*map(Text, row))
    console.print(table)
    for sentence in plan.advice():
        console.print(sentence, highlight=False, soft_wrap=True)
