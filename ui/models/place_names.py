"""What the places of models are called for people."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.model_places import Place


def place_name(place: Place) -> str:
    """`LM Studio`; for a file of the user's own folders `Own folder`."""
    if place is Place.FOLDER:
        return QCoreApplication.translate("Places", "Own folder")
    return {
        Place.COLIBRI: "Colibri",
        Place.LM_STUDIO: "LM Studio",
        Place.OLLAMA: "Ollama",
        Place.HUGGING_FACE: "Hugging Face",
    }[place]
