"""The scheduler's figures: counters for the status page and series for Prometheus."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bridge.model import Priority

WAIT_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30)
EXEC_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60)


M = TypeVar("M", Counter, Gauge, Histogram)


def _make(
    metric: type[M], name: str, documentation: str, registry: CollectorRegistry, **more: Any
) -> M:
    return metric(name, documentation, namespace="deskbridge", registry=registry, **more)


class SchedulerStats:
    """Counts what the scheduler did since the bridge started."""

    def __init__(self) -> None:
        self.executed_total = 0
        self.executed_by_priority = {priority.name: 0 for priority in Priority}
        self.wait_duration_ms_sum = 0.0
        self.exec_duration_ms_sum = 0.0
        self.timeout_total = 0
        self.rate_limited_total = 0
        self.fast_fail_total = 0
        self.registry = CollectorRegistry()
        make = partial(_make, registry=self.registry)
        self._executed = make(
            Counter, "ui_action_executed", "Flows that ran.", labelnames=("priority",)
        )
        self._wait = make(
            Histogram, "ui_action_wait_duration_seconds", "Time in the queue.", buckets=WAIT_BUCKETS
        )
        self._exec = make(
            Histogram,
            "ui_action_exec_duration_seconds",
            "Time a flow took.",
            labelnames=("priority",),
            buckets=EXEC_BUCKETS,
        )
        self._timeout = make(Counter, "ui_action_timeout", "Callers whose wait ended.")
        self._limited = make(Counter, "ui_action_rate_limited", "Actions refused: full.")
        self._fast_fail = make(Counter, "ui_action_fast_fail", "Actions refused: app away.")
        self._pending = make(Gauge, "send_queue_pending", "Actions that wait to start.")
        for priority in Priority:
            self._executed.labels(priority.name)
            self._exec.labels(priority.name)

    def executed(self, priority: Priority, wait_ms: float, exec_ms: float) -> None:
        """A flow ran for `exec_ms` after `wait_ms` in the queue."""
        self.executed_total += 1
        self.executed_by_priority[priority.name] += 1
        self.wait_duration_ms_sum += wait_ms
        self.exec_duration_ms_sum += exec_ms
        self._executed.labels(priority.name).inc()
        self._wait.observe(wait_ms / 1000)
        self._exec.labels(priority.name).observe(exec_ms / 1000)

    def timed_out(self) -> None:
        """A caller's wait ended before the action did."""
        self.timeout_total += 1
        self._timeout.inc()

    def rate_limited(self) -> None:
        """An action was refused since the queue is full."""
        self.rate_limited_total += 1
        self._limited.inc()

    def fast_failed(self, count: int = 1) -> None:
        """Actions were refused, or failed while waiting, since the app is away."""
        self.fast_fail_total += count
        self._fast_fail.inc(count)

    def snapshot(self, pending: int) -> dict[str, Any]:
        """The figures as `/api/status` shows them under `ui_scheduler`."""
        return {
            "executed_total": self.executed_total,
            "executed_by_priority": dict(self.executed_by_priority),
            "wait_duration_ms_sum": round(self.wait_duration_ms_sum, 3),
            "exec_duration_ms_sum": round(self.exec_duration_ms_sum, 3),
            "timeout_total": self.timeout_total,
            "rate_limited_total": self.rate_limited_total,
            "fast_fail_total": self.fast_fail_total,
            "pending_count": pending,
        }

    def exposition(self, pending: int) -> bytes:
        """Prometheus text format; takes milliseconds, so call it in a thread."""
        self._pending.set(pending)
        return generate_latest(self.registry)
