"""Reads texts with a model that need not fit into memory, and need not be a file yet: some layers at a time.

with open_layers(checkpoint, folder) as source, Reading(source, passages, config) as reading:
    reading.run()
    with reading.output() as output:
        output.log_probabilities(0)
"""

from engine.convert.streaming.layers import LayerSource, ModelLayers, PlannedLayers, layer_source, open_layers
from engine.convert.streaming.reading import Output, Reading

__all__ = ["LayerSource", "ModelLayers", "Output", "PlannedLayers", "Reading", "layer_source", "open_layers"]
