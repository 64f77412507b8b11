"""How the engine's bands of time are named, coloured and put together for people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engine.steps import Steps


@dataclass(frozen=True, slots=True)
class Band:
    """Some of the engine's bands shown as one; ``token`` names its colour."""

    token: str
    parts: tuple[str, ...]

    @property
    def is_of_some_models(self) -> bool:
        """Whether a model may have nothing of the kind: then the legend leaves it out."""
        return self.token in ("band_experts", "band_feed_forward", "band_router")

    @property
    def name(self) -> str:
        translate = QCoreApplication.translate
        return {
            "band_experts": translate("Bands", "experts"),
            "band_feed_forward": translate("Bands", "feed forward"),
            "band_attention": translate("Bands", "attention"),
            "band_router": translate("Bands", "router"),
            "band_norms": translate("Bands", "norms and other"),
            "band_output": translate("Bands", "output"),
            "band_sampling": translate("Bands", "sampling"),
            "band_disk": translate("Bands", "waiting for disk"),
            "band_waiting": translate("Bands", "waiting at barriers"),
            "band_host": translate("Bands", "scheduling and text"),
        }[self.token]


SHOWN_BANDS = (  # from the bottom of the stack
    Band("band_experts", ("experts",)),
    Band("band_feed_forward", ("feed forward",)),  # of layers without experts: all of a dense model's
    Band("band_attention", ("attention",)),
    Band("band_router", ("router",)),
    Band("band_norms", ("norms", "embedding", "other")),
    Band("band_output", ("output",)),
    Band("band_sampling", ("sampling",)),
    Band("band_host", ("host",)),
    Band("band_disk", ("disk",)),
    Band("band_waiting", ("waiting",)),
)


def shown_bands_us(steps: Steps, which: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
    """(n, len(SHOWN_BANDS)) of the wall time of the steps at the places `which`."""
    shown: NDArray[np.float64] = steps.bands_us[which] @ _parts()
    return shown


@cache
def _parts() -> NDArray[np.float64]:
    """(len(BANDS), len(SHOWN_BANDS)): 1 where one of the engine's bands is part of one that is shown."""
    import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

    from engine.steps import BANDS  # noqa: PLC0415

    return np.array([[float(part in band.parts) for band in SHOWN_BANDS] for part in BANDS])
