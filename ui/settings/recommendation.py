"""What is recommended for the open model's answers, and by whom, in a sentence or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from ui import format as fmt

if TYPE_CHECKING:
    from engine import ModelInfo
    from engine.recommended_sampling import RecommendedSampling

translate = QCoreApplication.translate


def recommendation(model: ModelInfo | None) -> str:
    """For the settings: what counts as long as the user chooses nothing."""
    own = translate("Recommendation", "What you choose here counts for every model instead.")
    if model is None:
        return translate("Recommendation", "Every model is asked as is best for it.") + " " + own
    if model.sampling is None:
        return translate(
            "Recommendation", "Nothing is recommended for {model}: these are Colibri's own values."
        ).format(model=model.name)
    return _said(model, model.sampling) + " " + own


def _said(model: ModelInfo, sampling: RecommendedSampling) -> str:
    sentences = {
        "file": translate("Recommendation", "The file of {model} recommends {values}."),
        "family": translate("Recommendation", "The publisher of {family} recommends {values}."),
        "size": translate("Recommendation", "A model as small as {model} does best with {values}."),
    }
    return sentences[sampling.source].format(model=model.name, family=sampling.family, values=_values(sampling))


def _values(sampling: RecommendedSampling) -> str:
    names = {
        "temperature": translate("Recommendation", "temperature {n}"),
        "top_k": translate("Recommendation", "top k {n}"),
        "top_p": translate("Recommendation", "top p {n}"),
        "min_p": translate("Recommendation", "min p {n}"),
        "repetition_penalty": translate("Recommendation", "repetition penalty {n}"),
    }
    listed = [
        text.format(n=fmt.plain(sampling.values[name])) for name, text in names.items() if name in sampling.values
    ]
    return translate("Recommendation", ", ").join(listed)
