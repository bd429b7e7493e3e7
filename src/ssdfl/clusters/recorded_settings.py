"""Record formation's settings in a plan, and read them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from ssdfl.clusters.formation import FormationSettings
from ssdfl.clusters.heterogeneity import AmplificationSettings
from ssdfl.errors import InputError
from ssdfl.graph import MIXINGS
from ssdfl.theory import Constants

Part = TypeVar("Part", Constants, AmplificationSettings)


def record(settings: FormationSettings) -> dict[str, float | str]:
    """All settings of formation, by name."""
    return {
        **asdict(settings.constants),
        "message_bytes": settings.message_bytes,
        "sends_early": settings.sends_early,
        "corrects": settings.corrects,
        "price": settings.price,
        "with_tau_a": settings.with_tau_a,
        "threshold_step": settings.threshold_step,
        "liars": settings.liars,
        **asdict(settings.amplification),
        "mixing": getattr(settings.weights, "__name__", "own"),
    }


def settings_from(
    recorded: Mapping[str, float | str], partition: str, score: str
) -> FormationSettings:
    """The inverse of `record`.

    Raises:
        InputError: the plan was not formed, or its weight rule or score is the user's own function.

    Examples:
        >>> settings_from(record(FormationSettings(price=2.0)), "cost", "time").price
        2.0
    """
    values: dict[str, Any] = dict(recorded)
    remedy = "Pass the settings to repair it with."
    if values.get("mixing") not in MIXINGS:
        raise InputError(
            "settings of the plan", "missing, or of a user's own rule", "a formed plan", remedy
        )
    return FormationSettings(
        constants=_part(Constants, values),
        partition=partition,
        score=score,
        price=values["price"],
        message_bytes=values["message_bytes"],
        weights=MIXINGS[values["mixing"]],
        with_tau_a=values["with_tau_a"],
        threshold_step=values["threshold_step"],
        amplification=_part(AmplificationSettings, values),
        sends_early=values.get("sends_early", True),
        corrects=values.get("corrects", False),
        liars=int(values.get("liars", 0)),
    )


def _part(kind: type[Part], values: Mapping[str, Any]) -> Part:
    return kind(**{one.name: values[one.name] for one in fields(kind) if one.name in values})
