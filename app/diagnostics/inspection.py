"""What the system check looks at: the machine's files, facts that are in no file, the model, the folders."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.hardware.capacity import ControlGroup, MemoryUse, read_control_group, read_memory_use
from engine.hardware.cpu import may_use_tiles
from engine.hardware.frequency import Frequency, read_frequency
from engine.hardware.pages import TransparentPages, read_transparent_pages
from engine.hardware.processor import Cores, Processor, read_cores, read_processor
from engine.hardware.surroundings import Virtualisation, read_virtualisation
from engine.hardware.system_files import SystemFiles
from engine.kernels.tiers import ISA_VARIABLE

if TYPE_CHECKING:
    from app.machine_speeds import MachineSpeeds
    from engine.memory import MemoryPlan


@dataclass(frozen=True, slots=True)
class Host:
    """Facts that no file tells. has_tiles: the kernel granted AMX tile registers (None: the CPU has none)."""

    system: str  # "Linux", "Darwin", "Windows"
    machine: str  # "x86_64", "aarch64"
    libc: str  # "glibc 2.39"; empty where it is not told
    has_tiles: bool | None
    forced_tier: str = ""  # what COLIBRI_ISA says
    has_polkit: bool = False

    @classmethod
    def live(cls) -> Host:
        """This machine."""
        return cls(
            platform.system(),
            platform.machine(),
            " ".join(platform.libc_ver()).strip(),
            may_use_tiles(),
            os.environ.get(ISA_VARIABLE, ""),
            has_polkit(),
        )


def has_polkit() -> bool:
    """Whether pkexec can ask for consent: it is installed, and the bus that it speaks over is there."""
    return sys.platform == "linux" and bool(shutil.which("pkexec")) and Path("/run/dbus/system_bus_socket").exists()


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """The model that is loaded or meant. hugetlb_bytes: what of it already lies on reserved huge pages."""

    name: str
    total_bytes: int
    hugetlb_bytes: int = 0

    @classmethod
    def of(cls, name: str, plan: MemoryPlan) -> ModelNeeds:
        """What an opened model takes."""
        return cls(name, plan.total_bytes, plan.page_kinds.get("hugetlb", 0))


@dataclass(frozen=True)
class Inspection:
    """Everything that the checks read; what several of them need is read once.

    model_folder: whose disk is looked at. kernel_cache: the folder of compiled kernels. speeds_file: where measured
    speeds are kept; None: nowhere.
    """

    files: SystemFiles
    host: Host
    model_folder: Path
    kernel_cache: Path
    model: ModelNeeds | None = None
    speeds_file: Path | None = None

    @property
    def speeds(self) -> MachineSpeeds:
        """What was measured, as it is kept now."""
        from app.machine_speeds import MachineSpeeds  # noqa: PLC0415  (loads NumPy, which the window does without)

        return MachineSpeeds() if self.speeds_file is None else MachineSpeeds.load(self.speeds_file)

    @cached_property
    def processor(self) -> Processor:
        return read_processor(self.files)

    @cached_property
    def cores(self) -> Cores:
        return read_cores(self.files)

    @cached_property
    def frequency(self) -> Frequency:
        return read_frequency(self.files)

    @cached_property
    def memory(self) -> MemoryUse | None:
        return read_memory_use(self.files)

    @cached_property
    def control_group(self) -> ControlGroup:
        return read_control_group(self.files)

    @cached_property
    def transparent_pages(self) -> TransparentPages:
        return read_transparent_pages(self.files)

    @cached_property
    def virtualisation(self) -> Virtualisation:
        return read_virtualisation(self.files)

    @property
    def can_fix(self) -> bool:
        """Whether the helper could change this system: not from within a container."""
        return self.host.system == "Linux" and self.virtualisation.container is None
