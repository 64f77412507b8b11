"""Jobs: progress, rate, cancelling, and on which thread listeners hear of it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from app.jobs import Job, JobCancelledError, JobState


def test_a_thread_function_reports_to_listeners_on_the_loops_thread() -> None:
    heard: list[tuple[str, float | None, int]] = []

    def work(job: Job) -> str:
        job.report("copying", done_bytes=0, total_bytes=200)
        job.report(done_bytes=100)
        time.sleep(0.05)
        job.report(done_bytes=200)
        return "result"

    async def scenario() -> str:
        job = Job("copy")
        job.on_change(lambda job: heard.append((job.phase, job.fraction, threading.get_ident())))
        return await job.run(work)

    assert asyncio.run(scenario()) == "result"
    assert ("copying", 1.0, threading.get_ident()) in heard
    assert {thread for _, _, thread in heard} == {threading.get_ident()}


def test_many_reports_between_two_turns_of_the_loop_become_few_calls() -> None:
    async def scenario() -> tuple[int, float | None]:
        job, calls = Job("busy"), []
        job.on_change(calls.append)

        async def work(job: Job) -> None:
            for step in range(1000):
                job.report("working", fraction=step / 999)
            await asyncio.sleep(0)

        await job.run(work)
        await asyncio.sleep(0)
        return len(calls), job.fraction

    n_calls, fraction = asyncio.run(scenario())
    assert n_calls <= 3
    assert fraction == 1.0


def test_a_cancelled_thread_function_ends_at_its_next_check() -> None:
    started = threading.Event()

    def work(job: Job) -> None:
        started.set()
        while True:
            job.check()
            time.sleep(0.001)

    async def scenario() -> Job:
        job = Job("endless")
        task = asyncio.create_task(job.run(work))
        await asyncio.to_thread(started.wait)
        job.cancel()
        with pytest.raises(JobCancelledError, match="endless"):
            await task
        return job

    assert asyncio.run(scenario()).state is JobState.CANCELLED


def test_cancelling_the_awaiting_task_ends_the_thread_before_the_task() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(job: Job) -> None:
        started.set()
        try:
            while True:
                job.check()
                time.sleep(0.001)
        finally:
            ended.set()

    async def scenario() -> Job:
        job = Job("endless")
        task = asyncio.create_task(job.run(work))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()
        return job

    assert asyncio.run(scenario()).state is JobState.CANCELLED


def test_a_failure_is_raised_and_kept() -> None:
    def work(job: Job) -> None:
        raise ValueError("broken")

    job = Job("failing")
    with pytest.raises(ValueError, match="broken"):
        job.run_blocking(work)
    assert job.state is JobState.FAILED
    assert isinstance(job.error, ValueError)


def test_rate_and_time_left_follow_from_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("app.jobs.time.monotonic", lambda: now_s[0])

    def work(job: Job) -> None:
        job.report("copying", done_bytes=0, total_bytes=1000)
        now_s[0] += 0.1
        job.report(done_bytes=250)
        assert job.rate_bytes_per_second == pytest.approx(2500)
        assert job.seconds_left == pytest.approx(0.3)

    Job("copy").run_blocking(work)


def test_steps_that_take_longer_than_the_window_give_a_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 0.0, 20.0, 40.0])
    monkeypatch.setattr("app.jobs.time.monotonic", lambda: next(clock))

    def work(job: Job) -> None:
        job.report("measuring", fraction=0.0)
        assert job.seconds_left is None
        job.report(fraction=0.25)
        job.report(fraction=0.5)
        assert job.seconds_left == pytest.approx(40.0)

    Job("measure").run_blocking(work)


def test_a_new_phase_forgets_the_figures_of_the_last() -> None:
    def work(job: Job) -> None:
        job.report("one", done_bytes=10, total_bytes=10)
        job.report("two")
        assert (job.fraction, job.done_bytes, job.rate_bytes_per_second) == (None, None, None)

    Job("phases").run_blocking(work)


def test_a_job_runs_once() -> None:
    job = Job("once")
    job.run_blocking(lambda job: None)
    with pytest.raises(RuntimeError, match="runs once"):
        job.run_blocking(lambda job: None)


def test_a_listener_that_was_taken_off_hears_nothing() -> None:
    heard: list[Job] = []
    job = Job("quiet")
    stop_listening = job.on_change(heard.append)
    stop_listening()
    job.run_blocking(lambda job: job.report("working"))
    assert heard == []


def test_the_log_is_read_from_where_it_was_left() -> None:
    def work(job: Job) -> None:
        job.report("writing")
        job.say("blk.0 as Q4_K")
        lines, n_seen = job.lines_after(0)
        assert [line.split("  ")[-1] for line in lines] == ["writing", "blk.0 as Q4_K"]
        job.say("blk.1 as Q4_K")
        assert [line.split("  ")[-1] for line in job.lines_after(n_seen)[0]] == ["blk.1 as Q4_K"]

    Job("convert").run_blocking(work)
