"""Turns a small matrix of colours into the pixels of a grid with gaps and marks, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIN_CELL_WITH_GAP = 4.0  # pixels; smaller cells touch
_LARGEST_MARK = 12.0


@dataclass(frozen=True, slots=True)
class Axis:
    """For each pixel along one side: which cell it belongs to, whether it is a gap, whether a mark covers it."""

    cells: NDArray[np.intp]  # (n_pixels,)
    gaps: NDArray[np.bool_]  # (n_pixels,)
    marks: NDArray[np.bool_]  # (n_pixels,)

    @classmethod
    def of(cls, n_cells: int, n_pixels: int, scale: float) -> Axis:
        """Divide ``n_pixels`` device pixels among the cells; ``scale`` is device pixels per logical pixel."""
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        pixels = np.arange(n_pixels)
        size = n_pixels / n_cells
        cells = np.minimum((pixels * n_cells) // max(1, n_pixels), n_cells - 1)
        gap = max(1, round(scale))
        from_start = pixels - np.ceil(cells * size)
        has_gaps = size >= _MIN_CELL_WITH_GAP * scale
        gaps = (from_start < gap) & (cells > 0) if has_gaps else np.zeros(n_pixels, bool)
        half_mark = min(_LARGEST_MARK * scale, max(2.0, size * 0.5)) / 2
        marks = np.abs(pixels + 0.5 - (cells + 0.5) * size - (gap / 2 if has_gaps else 0)) <= half_mark
        return cls(cells, gaps, marks)


class Raster:
    """Made once for a size; :meth:`paint` costs about a millisecond for a panel full of cells."""

    def __init__(self, across: Axis, down: Axis) -> None:
        self._across, self._down = across, down
        self._columns, self._rows = (axis.marks.nonzero()[0] for axis in (across, down))
        self._marked_columns, self._marked_rows = across.cells[self._columns], down.cells[self._rows]
        self._gap_columns, self._gap_rows = (axis.gaps.nonzero()[0] for axis in (across, down))

    def paint(
        self, colors: NDArray[np.uint32], is_marked: NDArray[np.bool_], gap_color: int, mark_color: int
    ) -> NDArray[np.uint32]:
        """Pixels (height, width) from the cells' colours and marks, both (n_rows, n_columns)."""
        lines = colors.take(self._across.cells, axis=1)  # a row of pixels for each row of cells
        lines[:, self._gap_columns] = gap_color
        image = lines.take(self._down.cells, axis=0)
        if is_marked.any():
            covered = is_marked.take(self._marked_rows, axis=0).take(self._marked_columns, axis=1)
            at_row, at_column = covered.nonzero()
            image[self._rows[at_row], self._columns[at_column]] = mark_color
        image[self._gap_rows] = gap_color
        return image
