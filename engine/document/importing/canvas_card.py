"""A card of a canvas, and how its settings are read one by one: each is told of, under the name it is asked for.

What kinds of cards there are is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.document.importing.models import model_name
from engine.document.importing.report import Report
from engine.document.importing.values import Fields, as_number, as_seconds, as_text, as_whole
from engine.document.wording import shown

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A card of the canvas.

    Attributes:
        id: Its foreign id.
        kind: What it is, in small letters: `loop`.
        title: What it says.
        fields: Its settings.
        used: The handles that edges start from, in the file's order.
    """

    id: str
    kind: str
    title: str
    fields: Fields
    used: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """How the report names it."""
        return f"card {self.id}"


Converter = Callable[[Card, Report], Config]


def choice(
    card: Card,
    report: Report,
    config: Config,
    names: tuple[str, ...],
    ours: str,
    choices: Mapping[str, str],
    *,
    is_vital: bool = False,
) -> None:
    """Take over a setting that is one of a few words. An unknown one stays, and is a problem, where it `is_vital`."""
    given = card.fields.take(*names)
    if given is None:
        return
    choice = choices.get(as_text(given).strip().lower().replace("-", "_"))
    if choice is None and is_vital:
        config[ours] = given
        report.left(f"{card.place}, {names[0]}", f'There is no "{shown(given, 40)}" here; choose one.')
        return
    if choice is None:
        report.left(f"{card.place}, {names[0]}", f'There is no "{shown(given, 40)}" here; the usual one is taken.')
        return
    config[ours] = choice
    report.carried(f"{card.place}, {names[0]}", f"{ours}: {choice}.")


def seconds(card: Card, report: Report, config: Config) -> None:
    """Take over a time limit."""
    given = card.fields.take("timeout", "timeoutSeconds", "timeout_seconds")
    seconds = as_seconds(given)
    if seconds is not None and seconds > 0:
        config["timeout_s"] = seconds
        report.carried(f"{card.place}, timeout", f"timeout_s: {seconds:g}.")
    elif given is not None:
        report.left(f"{card.place}, timeout", f"{shown(given, 40)} is no duration.")


def number(card: Card, report: Report, config: Config, names: tuple[str, ...], ours: str, *, whole: bool) -> None:
    """Take over a number."""
    given = card.fields.take(*names)
    if given is None:
        return
    number = as_whole(given) if whole else as_number(given)
    if number is None or number < (1 if whole else 0):
        report.left(f"{card.place}, {names[0]}", f"{shown(given, 40)} is no number that fits here.")
        return
    config[ours] = number
    report.carried(f"{card.place}, {names[0]}", f"{ours}: {number:g}.")


def text(card: Card, report: Report, config: Config, names: tuple[str, ...], ours: str) -> None:
    """Take over a text."""
    given = card.fields.take(*names)
    text = as_text(given)
    if text.strip():
        config[ours] = text
        report.carried(f"{card.place}, {names[0]}", f"{ours}.")
    elif given not in (None, ""):
        report.left(f"{card.place}, {names[0]}", "It is no text.")


def model(card: Card, report: Report, config: Config) -> None:
    """Take over the model and its provider."""
    name = as_text(card.fields.take("model", "modelId", "model_id")).strip()
    provider = as_text(card.fields.take("provider")).strip()
    if not name:
        if provider:
            report.left(f"{card.place}, provider", "Without a model, the workflow's own answers.")
        return
    config["model"], how = model_name(name, provider)
    if provider:
        report.carried(f"{card.place}, provider", "It stands before the model's name.")
    (report.carried if config["model"] == name else report.changed)(f"{card.place}, model", how)


def asks(card: Card, report: Report, config: Config) -> None:
    """Take over how a model is asked."""
    model(card, report, config)
    number(card, report, config, ("temperature",), "temperature", whole=False)
    number(card, report, config, ("maxTokens", "max_tokens"), "max_tokens", whole=True)
    number(card, report, config, ("topP", "top_p"), "top_p", whole=False)
    seconds(card, report, config)


def port_name(text: str) -> str:
    """A foreign name as the name of a port: small letters, digits and `_`; empty where nothing is left."""
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in text.strip().lower()).strip("_")[:40]
    return f"n{kept}" if kept[:1].isdigit() else kept
