"""Reports as tables for people, on stderr."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irc.runtime.report import Report


def print_report(report: Report) -> None:
    """Print a report on stderr."""
    table = Table(box=SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in report.rows():
        table.add_row(label, Text(text))  # plain Text: names in models may look like markup
    Console(stderr=True).print(table)
