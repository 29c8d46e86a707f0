"""Carries out one action: its flow under a deadline, the commit point, and the verifier.

Nothing leaves here but an `Outcome` (and LostFence: a worker that lost its lease writes nothing).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import structlog
import trio
from outcome import Error, Value, acapture
from pydantic import ValidationError

from bridge.apps.base import Adapter, Found, Verdict
from bridge.clock import WallClock
from bridge.errors import BridgeError, LostFence
from bridge.evidence import Evidence
from bridge.files import OpenFile, no_files
from bridge.flow import AppControl, Flow, FlowContext, RetryLater, SecurityStop, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import Act, Kind, Params
from bridge.model import Action, Effect, Json, Need, Step
from bridge.outcome import Fail, Outcome, Retry, Success, Unknowable, of_error
from bridge.policy import app_not_ready
from bridge.scheduler import Running
from bridge.store import Store
from ui_backends.a11y import A11yReader
from ui_backends.base import Backend

log = structlog.get_logger(__name__)

APP_END_PATIENCE = 0.5
"""Seconds in which an app that is just dying is seen to be dead."""

VERIFY_DEADLINE = 10.0
"""Seconds that looking for an effect may take."""

CLOSING_VERIFY_DEADLINE = 3.0
"""The same while the bridge ends."""

CLEAN_DEADLINE = 15.0
"""Seconds that bringing the app to its known screen may take."""

CANCEL_GRACE = 5.0
"""Seconds after which a cancelled flow that goes on makes the seat stuck."""

STUCK_DEADLINE = 30.0
"""Seconds that a stuck flow is waited for before the process ends."""


class Seat(AppControl, Protocol):
    """What a flow's surroundings must tell and be told."""

    name: str
    adapter: Adapter
    backend: Backend
    a11y: A11yReader | None
    needs_clean: bool
    """The screen may be in any state; tidy it before the next flow."""

    @property
    def closing(self) -> bool:
        """Whether the bridge is ending."""
        ...

    @property
    def launch_id(self) -> str | None:
        """The app launch that is up; None when none is."""
        ...

    async def app_gone(self) -> None:
        """Wait until no app process is up."""
        ...

    def healthy(self) -> bool:
        """Whether display and app are well, as far as is known right now."""
        ...

    def lease_check(self) -> None:
        """Raise LostFence when the worker's right may have ended."""
        ...

    def step(self, action: Action, step: Step) -> None:
        """Tell those who watch."""
        ...

    async def stuck(self, action: Action) -> None:
        """Tell that a flow ignores its cancellation."""
        ...

    def give_up(self) -> None:
        """End the process; its supervisor starts it anew."""
        ...


class _Permit:
    """Lets a command through while the lease holds and nobody cancelled the action."""

    def __init__(self, seat: Seat, running: Running) -> None:
        self._seat = seat
        self._running = running

    def check(self) -> None:
        self._seat.lease_check()
        if self._running.cancel_requested and not self._running.handed_over:
            raise cancelled()


def cancelled() -> BridgeError:
    """The error of an action that was cancelled while it ran."""
    return BridgeError("CANCELLED", "cancelled before its commit point", executed=False)


class Runner:
    """Carries out actions on one seat."""

    def __init__(
        self,
        *,
        seat: Seat,
        kinds: Mapping[str, Kind],
        flows: Mapping[str, Flow[Any]],
        store: Store,
        clock: WallClock,
        evidence: Evidence,
        open_file: OpenFile = no_files,
    ) -> None:
        self._seat = seat
        self._kinds = kinds
        self._flows = flows
        self._store = store
        self._clock = clock
        self._evidence = evidence
        self._open_file = open_file

    async def carry_out(self, running: Running) -> Outcome:
        """Run the action's flow, or, for one left running by a dead process, judge it."""
        action = running.action
        kind, flow = self._kinds.get(action.kind), self._flows.get(action.kind)
        if kind is None or flow is None:
            return Fail(
                BridgeError("UNSUPPORTED_BY_APP", f"this app has no {action.kind}", executed=False)
            )
        try:
            params = kind.params.model_validate(action.params)
        except ValidationError as error:
            return Fail(BridgeError("INVALID_REQUEST", str(error), executed=False))
        ended: Value[Outcome] | Error | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._guard, running, kind.timeout)
                ended = await acapture(self._attempt, running, kind, flow, params)
                nursery.cancel_scope.cancel()
        except BaseException as error:
            # A cancellation from outside is told again at the next checkpoint; what the flow
            # came to must be written first.
            if ended is None or not isinstance(_sole(error), trio.Cancelled):
                raise
        return ended.unwrap()

    async def judge_left_over(self, running: Running) -> Outcome:
        """What became of an action that was running when its process died."""
        action = running.action
        again = Retry(_crash(), after=0.0, counts=False, crashed=True)
        kind, flow = self._kinds.get(action.kind), self._flows.get(action.kind)
        if action.mark is None or kind is None or flow is None:
            return again
        return await self._judge(running, flow, kind.params.model_validate(action.params), again)

    # -- one attempt ---------------------------------------------------------------------

    async def _guard(self, running: Running, timeout: float) -> None:
        """End the process rather than start anything beside a flow that cannot be stopped."""
        await trio.sleep(CLEAN_DEADLINE + timeout + VERIFY_DEADLINE + CANCEL_GRACE)
        await self._seat.stuck(running.action)
        await trio.sleep(STUCK_DEADLINE)
        self._seat.give_up()

    async def _attempt(
        self, running: Running, kind: Kind, flow: Flow[Any], params: Params
    ) -> Outcome:
        seat = self._seat
        hands = Hands(
            seat.backend,
            permit=_Permit(seat, running),
            on_step=lambda step: self._note(running, step),
            wall_ms=self._clock.now_ms,
            a11y=seat.a11y,
        )
        dry_run = isinstance(params, Act) and params.dry_run
        context: FlowContext[Any] = FlowContext(
            action_id=running.action.id,
            attempt=running.action.attempt,
            params=params,
            hands=hands,
            commit=_Commit(self._store, seat, running, self._clock, dry_run=dry_run),
            save=lambda name, picture: self._evidence.save(running.action.id, name, picture),
            control=seat,
            owner=running.action.owner if kind.signed_in else None,
            open_file=self._open_file,
        )
        launch = seat.launch_id
        try:
            with trio.move_on_after(math.inf) as running.scope:
                if kind.effect is not Effect.READ and Need.APP in kind.needs:
                    await self._tidy(hands, context)
                running.scope.deadline = trio.current_time() + kind.timeout
                result = await flow.run(context)
                return Success(result, context.evidence)
            problem: BaseException = self._overran(running, kind)
        except BaseException as error:  # also a cancellation: what was pressed must be judged
            problem = _sole(error)
        if isinstance(problem, LostFence):
            raise problem
        seat.needs_clean = True
        if isinstance(problem, StoppedBeforeCommit):
            return Success({"dry_run": True, **problem.found}, context.evidence)
        return await self._failed(running, flow, params, problem, context, launch)

    async def _tidy(self, hands: Hands, context: FlowContext[Any]) -> None:
        if not self._seat.needs_clean:
            return
        with trio.move_on_after(CLEAN_DEADLINE) as scope:
            await hands.release_all()
            await self._seat.adapter.clean_screen(hands)
            self._seat.needs_clean = False
        if scope.cancelled_caught:
            raise BridgeError("UI_ERROR", "the app could not be brought to its known screen")

    def _overran(self, running: Running, kind: Kind) -> BridgeError:
        if trio.current_time() >= running.scope.deadline:
            return BridgeError("STEP_TIMEOUT", f"the flow took longer than {kind.timeout:g} s")
        return _interrupted()

    async def _failed(
        self,
        running: Running,
        flow: Flow[Any],
        params: Params,
        problem: BaseException,
        context: FlowContext[Any],
        launch: str | None,
    ) -> Outcome:
        error = _as_bridge_error(problem)
        context.evidence["failure"] = {"code": error.code, "detail": error.detail}
        seat = self._seat
        unhealthy = (
            not isinstance(problem, Exception) or not seat.healthy() or seat.launch_id != launch
        )
        if seat.launch_id != launch and error.code in _OF_A_DEAD_APP:
            error = app_not_ready("the app ended while this ran")
        outcome = of_error(error, unhealthy=unhealthy)
        if isinstance(problem, RetryLater):
            outcome = Retry(error, problem.after, problem.queue, problem.counts)
        if running.handed_over:
            again = outcome if isinstance(outcome, Retry) else Retry(error)
            return await self._judge(running, flow, params, again)
        if isinstance(problem, Exception):
            await self._picture(running, context)
        return replace(outcome, evidence=context.evidence)

    async def _picture(self, running: Running, context: FlowContext[Any]) -> None:
        with trio.move_on_after(6):
            try:
                picture = await self._seat.backend.capture()
                name = await self._evidence.save(running.action.id, "failure", picture)
                context.evidence["screen"] = name
            except Exception as error:  # a picture more or less must not change the outcome
                log.info("no picture of the failure", error=repr(error))

    def _note(self, running: Running, step: Step) -> None:
        running.steps.append(step)
        self._seat.step(running.action, step)

    # -- after the commit point ----------------------------------------------------------

    async def _judge(
        self, running: Running, flow: Flow[Any], params: Params, again: Retry
    ) -> Outcome:
        """Look for the effect; `again` is what becomes of it if it did not happen."""
        verdict = await self._verdict(running, flow, params)
        cause = {"code": again.error.code, "detail": again.error.detail}
        evidence = {**verdict.evidence, "cause": cause}
        self._seat.needs_clean = True
        if verdict.found is Found.DONE:
            return Success(verdict.result, evidence)
        if verdict.found is Found.NOT_DONE or running.action.effect is not Effect.ONCE:
            after = again.after if again.queue else again.after or 1.0
            return replace(again, after=after, evidence=evidence)
        return Unknowable(
            BridgeError(
                "UNCERTAIN",
                "the key was pressed and the app does not tell whether it took effect; look at "
                "the evidence, then retry it (confirmed) or mark it done",
                executed=None,
            ),
            evidence,
        )

    async def _verdict(self, running: Running, flow: Flow[Any], params: Params) -> Verdict:
        mark = running.action.mark or {}
        action_id = running.action.id
        with trio.move_on_after(APP_END_PATIENCE, shield=True):
            await self._seat.app_gone()
        context: VerifyContext[Any] = VerifyContext(
            action_id=action_id,
            params=params,
            mark=mark,
            eyes=Eyes(self._seat.backend, self._seat.a11y),
            app_ended=mark.get("launch") != self._seat.launch_id,
            load=lambda name: self._evidence.load(action_id, name),
        )
        # Shielded: a shutdown must not turn a sent message into an unknown one.
        patience = CLOSING_VERIFY_DEADLINE if self._seat.closing else VERIFY_DEADLINE
        with trio.move_on_after(patience, shield=True):
            try:
                return await flow.verify(context)
            except Exception as problem:
                log.warning("verifier failed", action=action_id, error=repr(problem))
                return Verdict(Found.UNKNOWN, evidence={"verifier": repr(problem)})
        return Verdict(Found.UNKNOWN, evidence={"verifier": "took too long"})


class StoppedBeforeCommit(Exception):
    """Raised at the commit point of a dry run; `found` is what the key would have been for."""

    def __init__(self, found: Mapping[str, Json]) -> None:
        super().__init__("a dry run ends here")
        self.found = found


class _Commit:
    """The commit point of one attempt (see `bridge.flow.Commit`); a dry run ends there."""

    def __init__(
        self, store: Store, seat: Seat, running: Running, clock: WallClock, *, dry_run: bool
    ) -> None:
        self._store = store
        self._seat = seat
        self._running = running
        self._clock = clock
        self._dry_run = dry_run

    async def __call__(
        self,
        mark: Mapping[str, Json],
        *,
        recheck: Callable[[], Awaitable[None]],
        act: Callable[[], Awaitable[None]],
    ) -> None:
        running = self._running
        if self._dry_run:
            await recheck()
            raise StoppedBeforeCommit({name: mark[name] for name in ("to",) if name in mark})
        whole = {**mark, "launch": self._seat.launch_id}
        running.action = await self._store.set_mark(
            running.action.id, running.fence, whole, running.steps, self._clock.now_ms()
        )
        try:
            if running.cancel_requested or running.action.cancel_requested:
                raise cancelled()
            await recheck()
            self._seat.lease_check()
        except BaseException:
            await self._withdraw()
            raise
        running.handed_over = True
        await act()

    async def _withdraw(self) -> None:
        running = self._running
        with trio.move_on_after(VERIFY_DEADLINE, shield=True):
            running.action = await self._store.withdraw_mark(
                running.action.id, running.fence, self._clock.now_ms()
            )


_OF_A_DEAD_APP = frozenset({"UI_ERROR", "WINDOW_NOT_FOUND", "FOCUS_LOST", "VERIFY_FAILED"})
"""How an app that ends in the middle looks to its flow."""


def _crash() -> BridgeError:
    return BridgeError("APP_NOT_READY", "the bridge stopped while this ran", executed=None)


def _interrupted() -> BridgeError:
    return BridgeError("APP_NOT_READY", "the flow was interrupted", executed=None)


def _sole(error: BaseException) -> BaseException:
    """The one error inside nested groups; the group itself when there are several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _as_bridge_error(problem: BaseException) -> BridgeError:
    if isinstance(problem, BridgeError):
        return problem
    if not isinstance(problem, Exception):
        return _interrupted()
    if isinstance(problem, RetryLater):
        code = "COOLDOWN" if problem.queue else "UI_ERROR"
        return BridgeError(code, problem.detail, executed=False)
    if isinstance(problem, SecurityStop):
        return BridgeError("PAUSED", str(problem), executed=False)
    log.error("flow raised", error=repr(problem), exc_info=problem)
    return BridgeError("UI_ERROR", f"the flow failed: {problem!r}")
