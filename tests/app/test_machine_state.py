from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from app.benchmark import Kind, SpeedTest, measure
from app.engine_service import EngineService, NoModelError
from app.jobs import Job, JobState
from app.machine_state import MachineState
from app.measurements import file_measurement, filed_measurements
from engine import Engine, EngineConfig

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "mixtral-mixed.gguf"
FILES = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: A  CPU\n",
    "proc/loadavg": "1.25 0.90 0.50 2/300 4711\n",
    "proc/meminfo": "MemTotal: 100 kB\nMemAvailable:    2048 kB\nHugePages_Free:       12\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2000000\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3000000\n",
    "sys/class/thermal/thermal_zone0/temp": "41000\n",
    "sys/class/thermal/thermal_zone1/temp": "67500\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}
TEST = SpeedTest(Kind.GENERATE, 4)


def test_a_laptop_tells_everything(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    state = MachineState.read(tmp_path)
    assert state == MachineState("A CPU", "powersave", 2500.0, 67.5, 12, "madvise", 2048 * 1024, 1.25)
    assert MachineState.from_json(state.to_json()) == state


def test_a_container_without_any_of_it_is_no_error(tmp_path: Path) -> None:
    state = MachineState.read(tmp_path)
    assert (state.governor, state.temperature_c, state.available_bytes, state.load_average) == (None,) * 4


def test_a_measurement_is_filed_with_the_machines_state_and_found_again(tmp_path: Path) -> None:
    before = MachineState("A CPU", "powersave", 2500.0, 60.0, 12, "madvise", 1 << 30, 0.1)
    after = MachineState("A CPU", "powersave", 2100.0, 88.0, 12, "madvise", 1 << 30, 2.0)
    with Engine.open(MODEL, EngineConfig(context_length=96, threads=1)) as engine:
        result = measure(engine, [TEST], 2)
    path = file_measurement(tmp_path, result, before, after)
    (tmp_path / "damaged.json").write_text("{")
    (tmp_path / "foreign.json").write_text('{"model_name": "x"}')
    (filed,) = filed_measurements(tmp_path)
    assert filed.path == path and filed.before == before and filed.after == after
    assert filed.tokens_per_second == {"generate 4": pytest.approx(result.speeds[0].median)}
    assert filed.started_at == result.started_at and isinstance(filed.started_at, datetime)


async def test_the_service_measures_the_open_model_between_its_other_work() -> None:
    service = EngineService()
    try:
        idle = Job("Measuring")
        with pytest.raises(NoModelError):
            await service.measure(idle, [TEST])
        assert idle.state is JobState.FAILED
        await service.load(MODEL, EngineConfig(context_length=96, threads=1))
        job, phases = Job("Measuring"), set[str]()
        job.on_change(lambda job: phases.add(job.phase))
        result = await service.measure(job, [TEST], 2)
        assert result.is_complete and len(result.speeds[0].samples) == 2
        assert "Measuring" in phases
    finally:
        service.close()
