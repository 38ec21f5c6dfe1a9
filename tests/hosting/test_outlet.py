from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.hosting.encoding import PROTOBUF, SSE, Encoding, Framing
from accord.hosting.outlet import BufferedOutlet
from accord.producer import CAUGHT_UP, Outlet, OutletOverflow
from hosting.exchange import soon


def lines(payloads: Sequence[bytes]) -> bytes:
    return b"".join(payload + b"\n" for payload in payloads)


LINES = Framing(lines, 1)


def outlet(max_buffered_bytes: int = 100, high_water: int = 10) -> BufferedOutlet:
    return BufferedOutlet(LINES, max_buffered_bytes=max_buffered_bytes, high_water=high_water)


async def turns(count: int = 5) -> None:
    """Lets everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def started(waiting: Any) -> asyncio.Task[None]:
    task: asyncio.Task[None] = asyncio.ensure_future(waiting)
    await turns()
    return task


async def test_it_is_an_outlet() -> None:
    def needs(_: Outlet) -> None: ...

    needs(outlet())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=8), max_size=12), st.integers(1, 20))
def test_what_is_put_is_taken_in_order_in_pieces_of_any_size(payloads: list[bytes], at_most: int) -> None:
    async def check() -> None:
        out = outlet(max_buffered_bytes=1000)
        for payload in payloads:
            out.put(payload)
        taken = []
        while out.waiting:
            taken.append(out.take(at_most))
            assert 0 < len(taken[-1]) <= at_most
        assert b"".join(taken) == lines(payloads)

    asyncio.run(check())


@given(st.lists(st.binary(max_size=8).filter(lambda payload: not set(payload) & {10, 13}), max_size=5))
@pytest.mark.parametrize("encoding", [SSE, PROTOBUF], ids=["sse", "protobuf"])
def test_what_waits_is_counted_as_it_leaves(encoding: Encoding, payloads: list[bytes]) -> None:
    framing = encoding.framing

    async def check() -> None:
        out = BufferedOutlet(framing, max_buffered_bytes=1000, high_water=10)
        for payload in payloads:
            out.put(payload)
        waiting = out.waiting
        assert len(out.take(1000)) == waiting
        assert out.waiting == 0

    asyncio.run(check())
    assert framing.frame(payloads) == b"".join(framing.frame([payload]) for payload in payloads)


async def test_of_a_backlog_no_more_is_framed_than_is_due() -> None:
    framed: list[int] = []

    def frame(payloads: Sequence[bytes]) -> bytes:
        framed.append(len(payloads))
        return lines(payloads)

    out = BufferedOutlet(Framing(frame, 1), max_buffered_bytes=10**6, high_water=10)
    payloads = [b"%d" % number for number in range(10_000)]
    for payload in payloads:
        out.put(payload)
    taken = [out.take(100)]
    assert framed == [37]
    while out.waiting:
        taken.append(out.take(100))
    assert b"".join(taken) == lines(payloads)
    assert max(framed) <= 50


async def test_draining_costs_nothing_where_there_is_nothing_to_wait_for() -> None:
    out = outlet(high_water=10)
    assert out.drain() is CAUGHT_UP
    out.put(b"123456789")
    assert out.drain() is CAUGHT_UP
    assert await out.drain() is None  # type: ignore[func-returns-value]


async def test_draining_waits_above_the_mark_only() -> None:
    out = outlet(high_water=10)
    out.put(b"123456789")
    assert out.buffered == 10
    assert (await started(out.drain())).done()
    out.put(b"")
    draining = await started(out.drain())
    assert not draining.done()
    out.take(1)
    assert out.buffered == 11  # the server does not have it yet
    await turns()
    assert not draining.done()
    assert not (await started(out.drain())).done()
    out.sent()
    await soon(draining)
    assert out.buffered == 10


async def test_all_who_drain_go_on_together_and_look_again() -> None:
    out = outlet(high_water=0)
    out.put(b"a")

    async def refill() -> None:
        await out.drain()
        out.put(b"b")

    first, second = await started(refill()), await started(out.drain())
    out.take(100)
    out.sent()
    await turns()
    assert first.done()
    assert not second.done()
    out.take(100)
    out.sent()
    await soon(second)


async def test_the_limit_is_met_exactly() -> None:
    out = outlet(max_buffered_bytes=20)
    out.put(b"x" * 9)
    out.put(b"x" * 9)
    assert not out.overflowed
    with pytest.raises(OutletOverflow, match=r"max_buffered_bytes.*drain"):
        out.put(b"")
    assert out.overflowed
    assert out.take(100) == (b"x" * 9 + b"\n") * 2


async def test_what_is_being_sent_counts() -> None:
    out = outlet(max_buffered_bytes=20)
    out.put(b"x" * 19)
    out.take(20)
    with pytest.raises(OutletOverflow):
        out.put(b"y")


async def test_after_a_refusal_nothing_goes_on() -> None:
    out = outlet(max_buffered_bytes=20)
    out.put(b"first")
    with pytest.raises(OutletOverflow):
        out.put(b"x" * 50)
    with pytest.raises(OutletOverflow):
        out.put(b"y")  # it would fit, but what came before it is missing
    assert out.take(100) == b"first\n"
    out.sent()
    with pytest.raises(OutletOverflow):
        out.put(b"y")


async def test_waiting_ends_when_enough_is_there() -> None:
    out = outlet()
    waiting = await started(out.wait(4))
    out.put(b"a")
    await turns()
    assert not waiting.done()
    out.put(b"b")
    await soon(waiting)
    await soon(out.wait(4))


async def test_waiting_ends_when_an_event_is_refused() -> None:
    out = outlet(max_buffered_bytes=1)
    waiting = await started(out.wait(1))
    with pytest.raises(OutletOverflow):
        out.put(b"a")
    await soon(waiting)
    await soon(out.wait(1))


async def test_waiting_ends_with_a_nudge() -> None:
    out = outlet()
    waiting = await started(out.wait(1))
    out.nudge()
    await soon(waiting)
    assert not (await started(out.wait(1))).done()


async def test_discarding_frees_memory_and_waiters_and_takes_no_more() -> None:
    out = outlet(max_buffered_bytes=20, high_water=0)
    out.put(b"a")
    draining = await started(out.drain())
    out.discard()
    await soon(draining)
    assert out.buffered == 0
    for _ in range(10):
        out.put(b"x" * 19)
    out.put(b"x" * 1000)
    assert (out.buffered, out.overflowed) == (0, False)


async def test_draining_a_discarded_outlet_lets_others_run() -> None:
    out = outlet()
    out.discard()
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(10):
        await out.drain()
    assert others >= 9
    task.cancel()


async def test_threads_put_while_the_loop_takes() -> None:
    out = outlet(max_buffered_bytes=10**7)
    threads, count = 4, 2000

    def work(name: int) -> None:
        for number in range(count):
            out.put(b"%d %d" % (name, number))

    async def take() -> bytes:
        taken = b""
        while taken.count(b"\n") < threads * count:
            await soon(out.wait(1))
            taken += out.take(512)
            out.sent()
        return taken

    taking = asyncio.create_task(take())
    await asyncio.gather(*(asyncio.to_thread(work, name) for name in range(threads)))
    found: dict[int, list[int]] = {}
    for name, number in (map(int, each.split()) for each in (await taking).splitlines()):
        found.setdefault(name, []).append(number)
    assert found == {name: list(range(count)) for name in range(threads)}
    assert out.buffered == 0
