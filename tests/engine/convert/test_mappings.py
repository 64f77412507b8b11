"""Each architecture's table gives what an independent converter gave: every key, tensor, shape, type and byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.convert import Checkpoint, ConversionOptions, plan_conversion
from engine.convert.mappings import TABLES
from engine.gguf import TensorType
from tests.engine.convert.manifests import KNOWN_DIFFERENCES, differences, shared_manifest
from tests.support.checkpoints import CheckpointCase, checkpoint_cases

SHARED = sorted(Path(folder).glob("*/gguf_manifest.json")) if (folder := os.environ.get("COLIBRI_FIXTURES")) else []


@pytest.mark.parametrize("case", checkpoint_cases(), ids=lambda case: case.name)
def test_a_checkpoint_becomes_what_the_other_converter_made_of_it(case: CheckpointCase, tmp_path: Path) -> None:
    with Checkpoint.open(case.write(tmp_path)) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType[case.type]))
        found = dict(differences(plan, case.manifest["keys"], case.manifest["tensors"]))

    assert found.keys() <= KNOWN_DIFFERENCES.get(case.name, {}).keys(), found


@pytest.mark.parametrize("manifest", SHARED, ids=lambda path: path.parent.name)
def test_a_shared_fixture_becomes_what_its_manifest_says(manifest: Path) -> None:
    entries = json.loads(manifest.read_text())
    kind = next(kind for kind, entry in entries.items() if "kv" in entry)
    keys, tensors = shared_manifest(entries[kind])

    with Checkpoint.open(manifest.parent) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType[kind]))
        found = dict(differences(plan, keys, tensors))

    assert found.keys() <= KNOWN_DIFFERENCES.get(manifest.parent.name, {}).keys(), found


def test_every_table_has_a_case() -> None:
    covered = {TABLES[case.config["architectures"][0]][0] for case in checkpoint_cases()}
    assert covered == {architecture for architecture, _ in TABLES.values()}
