"""Whole streams made from a seed: every family of events, mostly in order, with few ids so that they meet; and damage.

The same seed makes the same stream. Nothing here imports what is tested.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Raw = dict[str, Any]
Owner = str | None

WORDS = ("alpha", "be ta", "", "γδ", "line\nbreak", "日本", "🙂", "a\ud83d", "\ude00b", "\u2028", '"quoted"', "x" * 40)
KEYS = ("a", "b", "list", "k/1", "~t", "é")


@dataclass
class Stream:
    """What the consumer starts from (a partial run input) and the raw events it is sent."""

    seed: int
    run_input: Raw
    events: list[Raw]


def make_stream(seed: int, *, wild: float = 0.015, damage: int = 0) -> Stream:
    """The stream of a seed. `wild` is how often an event ignores the discipline, `damage` how many faults it has."""
    rng = random.Random(seed)
    maker = _Maker(rng, wild)
    stream = Stream(seed, maker.run_input(), maker.runs())
    for _ in range(damage):
        damage_stream(rng, stream.events)
    return stream


def json_value(rng: random.Random, depth: int = 2) -> Any:
    """Any JSON value that JavaScript holds as Python does."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.choice((True, False))
    if kind == 2:
        return rng.choice((0, 1, -7, 2**31, 2**53 - 1))
    if kind == 3:
        return rng.choice((0.5, -1.25, 1e-3))
    if kind in (4, 5):
        return rng.choice(WORDS)
    if kind == 6:
        return [json_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return json_object(rng, depth - 1)


def json_object(rng: random.Random, depth: int = 1) -> Raw:
    return {key: json_value(rng, depth) for key in rng.sample(KEYS, rng.randrange(4))}


@dataclass
class _Maker:
    rng: random.Random
    wild: float
    events: list[Raw] = field(default_factory=list)
    open: dict[str, dict[str, None]] = field(default_factory=dict)
    owners: dict[tuple[str, str], Owner] = field(default_factory=dict)
    steps: dict[tuple[Owner, str], None] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    lanes: dict[Owner, tuple[str, str]] = field(default_factory=dict)
    results: int = 0

    # What the consumer starts from

    def run_input(self) -> Raw:
        made: Raw = {"threadId": "t1", "runId": "r1", "messages": []}
        if self.chance(0.3):
            made["messages"] = self.messages(tagged=False)
        if self.chance(0.4):
            made["state"] = json_object(self.rng, 2)
        return made

    def messages(self, *, tagged: bool = True) -> list[Raw]:
        rng = self.rng
        found: dict[str, Raw] = {}
        for _ in range(rng.randrange(5)):
            message = rng.choice((self.assistant, self.user, self.tool, self.reasoning, self.activity, self.system))()
            namespace = {"reasoning": "reasoning", "activity": "activity"}.get(message["role"], "text")
            owner = self.owner() if tagged else None
            if owner is not None:
                message["subagentRunId"] = owner
            self.owners[namespace, message["id"]] = owner
            for call in message.get("toolCalls", ()):
                self.owners["call", call["id"]] = owner
            found[message["id"]] = self.decorated(message)
        listed = list(found.values())
        return listed + listed[:1] if tagged and self.is_wild() else listed

    def assistant(self) -> Raw:
        message: Raw = {"id": self.identifier("m"), "role": "assistant"}
        if self.chance(0.8):
            message["content"] = self.word()
        if self.chance(0.4):
            call = {"id": self.identifier("c"), "type": "function"}
            message["toolCalls"] = [{**call, "function": {"name": "find", "arguments": "{}"}}]
        return message

    def user(self) -> Raw:
        content: Any = self.word()
        if self.chance(0.4):
            content = [{"type": "text", "text": self.word()}]
            if self.chance(0.5):
                source = {"type": "url", "value": "https://example.org/i.png", "mimeType": "image/png"}
                content.append({"type": "image", "source": source})
        return {"id": self.rng.choice(("u1", "u2", "m3")), "role": "user", "content": content}

    def system(self) -> Raw:
        return {"id": "sys", "role": self.rng.choice(("system", "developer")), "content": self.word()}

    def tool(self) -> Raw:
        return {"id": f"t{self.rng.randrange(3)}", "role": "tool", "content": self.word(), "toolCallId": "c1"}

    def reasoning(self) -> Raw:
        return {"id": self.identifier("q"), "role": "reasoning", "content": self.word()}

    def activity(self) -> Raw:
        return {
            "id": self.identifier("a"),
            "role": "activity",
            "activityType": "plan",
            "content": json_object(self.rng, 1),
        }

    # Runs

    def runs(self) -> list[Raw]:
        for number in range(self.rng.choice((1, 1, 1, 2, 3))):
            if not self.run(f"r{number + 1}"):
                break
        return self.events

    def run(self, run_id: str) -> bool:
        """One run; false when nothing may follow it."""
        self.open = {"text": {}, "call": {}, "reasoning": {}, "span": {}}
        self.owners, self.steps, self.active, self.ended, self.lanes = {}, {}, [], [], {}
        started: Raw = {"type": "RUN_STARTED", "threadId": "t1", "runId": run_id}
        if self.chance(0.2):
            started["protocolVersion"] = self.rng.choice(("1.0", "1.1", "draft"))
        if self.chance(0.1):
            started["input"] = {"threadId": "t1", "runId": run_id, "messages": self.messages()}
        self.events.append(started)
        actions = self.actions()
        for _ in range(self.rng.randrange(4, 26)):
            self.rng.choice(actions)()
        if self.chance(0.03):
            return False  # truncated
        if self.chance(0.08):
            self.put("RUN_ERROR", message="out of luck", code="E")
            return True
        if not self.chance(0.04):
            self.close_all()
        finished: Raw = {"threadId": "t1", "runId": run_id}
        if self.chance(0.3):
            finished["outcome"] = self.rng.choice(
                (
                    {"type": "success"},
                    {"type": "success", "pendingToolCallIds": ["c1"]},
                    {"type": "cancelled"},
                    {"type": "interrupt", "interrupts": [{"id": name, "reason": "ask"} for name in ("i1", "i2")]},
                )
            )
        if self.chance(0.2):
            finished["result"] = json_object(self.rng)
        if self.chance(0.2):
            finished["usage"] = [{"provider": "p", "inputTokens": 3, "outputTokens": 0}]
        self.put("RUN_FINISHED", **finished)
        if self.chance(0.03):
            self.put("RUN_ERROR", message="late")
        return True

    def actions(self) -> list[Callable[[], None]]:
        streamed = [self.start, self.content, self.content, self.content, self.end]
        return [
            *(lambda kind=kind, act=act: act(kind) for kind in ("text", "call", "reasoning") for act in streamed),
            *[self.chunk] * 6,
            *[self.state_delta] * 3,
            *[self.activity_delta] * 2,
            self.span,
            self.result,
            self.result,
            self.step,
            self.step,
            self.state_snapshot,
            self.messages_snapshot,
            self.activity_snapshot,
            self.activity_snapshot,
            self.encrypted,
            self.subagent,
            self.subagent,
            self.aside,
            self.custom,
        ]

    # Streamed items

    def start(self, kind: str) -> None:
        identifier = self.identifier(_PREFIXES[kind][self.is_wild()])
        if identifier in self.open[kind] and not self.is_wild():
            return
        owner = self.owners.get((kind, identifier), self.owner())
        members: Raw = {"messageId": identifier}
        if kind == "call":
            members = {"toolCallId": identifier, "toolCallName": self.rng.choice(("find", "find", "make"))}
            if self.chance(0.4):
                members["parentMessageId"] = parent = self.identifier("m")
                if ("text", parent) in self.owners and not self.is_wild():
                    above = self.owners["text", parent]
                    if self.owners.get((kind, identifier), above) != above:
                        return
                    owner = above
        elif kind == "reasoning":
            members["role"] = "reasoning"
        else:
            if self.chance(0.6):
                members["role"] = self.rng.choice(("assistant", "assistant", "user", "system", "developer"))
            if self.chance(0.1):
                members["name"] = "Ada"
        self.owners.setdefault((kind, identifier), owner)
        self.open[kind][identifier] = None
        self.put(_EVENTS[kind][0], owner, **members)

    def content(self, kind: str) -> None:
        identifier = self.one_open(kind)
        if identifier is not None:
            self.put(_EVENTS[kind][1], self.tag(kind, identifier), **{_IDS[kind]: identifier}, delta=self.word())

    def end(self, kind: str) -> None:
        identifier = self.one_open(kind)
        if identifier is not None:
            self.open[kind].pop(identifier, None)
            self.put(_EVENTS[kind][2], self.tag(kind, identifier), **{_IDS[kind]: identifier})

    def span(self) -> None:
        if self.open["span"]:
            self.open["span"].clear()
            self.put("REASONING_END", messageId="q1")
        elif self.owners.get(("reasoning", "q1")) is None:
            self.open["span"]["q1"] = None
            self.owners.setdefault(("reasoning", "q1"), None)
            self.put("REASONING_START", messageId="q1")

    def chunk(self) -> None:
        kind = self.rng.choice(("text", "call", "reasoning"))
        owner = self.owner()
        building = self.lanes.get(owner)
        members: Raw = {}
        if building is not None and self.chance(0.7):
            kind, identifier = building
        else:
            identifier = self.identifier(_PREFIXES[kind][1])
            if self.owners.setdefault((kind, identifier), owner) != owner and not self.is_wild():
                return
            if (kind, identifier) in self.lanes.values() and not self.is_wild():
                return
            building = None
        if building is None or self.chance(0.3):
            members[_IDS[kind]] = identifier
            if kind == "call":
                members["toolCallName"] = "find"
        if kind == "text" and self.is_wild():
            members["role"] = "user"
        if self.chance(0.85):
            members["delta"] = self.word()
        if self.chance(0.1):
            members["rawEvent"] = {"from": "provider"}
        self.put(_EVENTS[kind][3], owner, **members)
        self.lanes[owner] = (kind, identifier)

    def result(self) -> None:
        self.results += 1
        identifier = f"t{self.results}" if not self.chance(0.1) else "t1"
        content: Any = self.word()
        if self.chance(0.2):
            content = [{"type": "text", "text": self.word()}]
        owner = self.owner()
        self.owners["text", identifier] = owner
        self.put(
            "TOOL_CALL_RESULT",
            owner,
            messageId=identifier,
            toolCallId=self.identifier("c"),
            content=content,
            role="tool",
        )

    def encrypted(self) -> None:
        subtype, kind, prefix = self.rng.choice((("message", "text", "m"), ("tool-call", "call", "c")))
        identifier = self.identifier(prefix)
        self.put(
            "REASONING_ENCRYPTED_VALUE",
            self.tag(kind, identifier),
            subtype=subtype,
            entityId=identifier,
            encryptedValue="sealed",
        )

    # Everything else

    def step(self) -> None:
        owner, name = self.owner(), self.rng.choice(("plan", "act"))
        if (owner, name) in self.steps:
            del self.steps[owner, name]
            self.put("STEP_FINISHED", owner, stepName=name)
        else:
            self.steps[owner, name] = None
            self.put("STEP_STARTED" if not self.is_wild() else "STEP_FINISHED", owner, stepName=name)

    def state_snapshot(self) -> None:
        snapshot = json_value(self.rng) if self.chance(0.15) else json_object(self.rng, 2)
        self.put("STATE_SNAPSHOT", self.owner(), snapshot=snapshot)

    def state_delta(self) -> None:
        self.put("STATE_DELTA", self.owner(), delta=self.patch())

    def patch(self) -> list[Raw]:
        return [self.operation() for _ in range(self.rng.choice((1, 1, 1, 2, 3, 0)))]

    def operation(self) -> Raw:
        rng = self.rng
        path = self.pointer()
        name = rng.choice(("add", "add", "add", "add", "replace", "remove", "move", "copy", "test"))
        if name in ("add", "replace", "test"):
            return {"op": name, "path": path, "value": json_value(rng)}
        return {"op": name, "path": path, **({} if name == "remove" else {"from": self.pointer()})}

    def pointer(self) -> str:
        rng = self.rng
        if rng.random() < 0.03:
            return ""
        path = f"/{rng.choice(('a', 'b', 'list', 'k~11', '~0t', 'é'))}"
        if rng.random() < 0.3:
            path += f"/{rng.choice(('a', 'b', '0', '1', '-', '2'))}"
        return path

    def messages_snapshot(self) -> None:
        if self.chance(0.5):
            self.put("MESSAGES_SNAPSHOT", messages=self.messages())

    def activity_snapshot(self) -> None:
        identifier = self.identifier("a") if not self.is_wild() else "m1"
        members: Raw = {"activityType": self.rng.choice(("plan", "search")), "content": json_object(self.rng, 1)}
        if self.chance(0.3):
            members["replace"] = self.chance(0.3)
        owner = self.owner()
        if members.get("replace") is not False or ("activity", identifier) not in self.owners:
            self.owners["activity", identifier] = owner
        self.put("ACTIVITY_SNAPSHOT", owner, messageId=identifier, **members)

    def activity_delta(self) -> None:
        identifier = self.identifier("a")
        tag = self.tag("activity", identifier)
        self.put("ACTIVITY_DELTA", tag, messageId=identifier, activityType="plan", patch=self.patch())

    def subagent(self) -> None:
        if self.active and self.chance(0.5):
            name = self.active.pop(self.rng.randrange(len(self.active)))
            self.ended.append(name)
            self.lanes.pop(name, None)
            if self.chance(0.5):
                self.put("SUBAGENT_FINISHED", subagentRunId=name, **({"result": 1} if self.chance(0.3) else {}))
            else:
                self.put("SUBAGENT_ERROR", subagentRunId=name, message="stuck")
            return
        name = self.rng.choice(("s1", "s2", "s3"))
        if name in (*self.active, *self.ended) and not self.is_wild():
            return
        members: Raw = {"name": "helper"}
        if self.active and self.chance(0.3):
            members["parentSubagentRunId"] = self.active[0]
        self.active.append(name)
        self.put("SUBAGENT_STARTED", subagentRunId=name, **members)

    def aside(self) -> None:
        self.put("RAW", self.owner(), event=json_value(self.rng), source="elsewhere")

    def custom(self) -> None:
        self.put("CUSTOM", self.owner(), name="signal", value=json_value(self.rng))

    # Closing, and small choices

    def close_all(self) -> None:
        for kind in ("text", "call", "reasoning"):
            for identifier in self.open[kind]:
                self.put(_EVENTS[kind][2], **{_IDS[kind]: identifier})
        if self.open["span"]:
            self.put("REASONING_END", messageId="q1")
        for owner, name in self.steps:
            self.put("STEP_FINISHED", owner, stepName=name)
        for name in self.active:
            self.put("SUBAGENT_FINISHED", subagentRunId=name)

    def put(self, event_type: str, owner: Owner = None, /, **members: Any) -> None:
        event: Raw = {"type": event_type, **members}
        if owner is not None:
            event["subagentRunId"] = owner
        if event_type not in _ASIDE:
            if event_type.startswith(("RUN_", "MESSAGES_")):
                self.lanes.clear()
            else:
                self.lanes.pop(owner, None)
        self.events.append(self.decorated(event))

    def decorated(self, shape: Raw) -> Raw:
        if self.chance(0.12):
            shape["metadata"] = {key: json_value(self.rng, 1) for key in self.rng.sample(("n", "who", "é"), 2)}
        if "type" in shape and self.chance(0.05):
            shape["timestamp"] = 1_700_000_000_000
        return shape

    def one_open(self, kind: str) -> str | None:
        if self.is_wild():
            return self.identifier(self.rng.choice(_PREFIXES[kind]))
        return self.rng.choice(list(self.open[kind])) if self.open[kind] else None

    def tag(self, kind: str, identifier: str) -> Owner:
        if self.is_wild():
            return "s1"
        return self.owners.get((kind, identifier)) if self.chance(0.5) else None

    def owner(self) -> Owner:
        if self.is_wild():
            return self.rng.choice(("s9", ""))
        return self.rng.choice(self.active) if self.active and self.chance(0.5) else None

    def identifier(self, prefix: str) -> str:
        return f"{prefix}{self.rng.choice((1, 1, 2, 3))}"

    def word(self) -> str:
        return self.rng.choice(WORDS)

    def is_wild(self) -> bool:
        return self.rng.random() < self.wild

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability


_IDS = {"text": "messageId", "call": "toolCallId", "reasoning": "messageId"}
#: Of the ids of items that explicit events build, and of those that chunks build.
_PREFIXES = {"text": ("m", "x"), "call": ("c", "y"), "reasoning": ("q", "z")}
_EVENTS = {
    "text": ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK"),
    "call": ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK"),
    "reasoning": (
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_MESSAGE_CHUNK",
    ),
}
_ASIDE = ("RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED")


def damage_stream(rng: random.Random, events: list[Raw]) -> None:
    """Puts one fault into a stream: into an event, or into their order."""
    position = rng.randrange(len(events))
    what = rng.randrange(10)
    if what == 0:
        del events[position]
        if not events:
            events.append({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"})
    elif what == 1:
        events.insert(rng.randrange(len(events) + 1), copy.deepcopy(events[position]))
    elif what == 2:
        other = rng.randrange(len(events))
        events[position], events[other] = events[other], events[position]
    elif what == 3:
        events.insert(position, {"type": rng.choice(("NOVEL_EVENT", "TEXT_MESSAGE_BLINK")), "x": 1})
    else:
        event = copy.deepcopy(events[position])
        damage_event(rng, event)
        events[position] = event


def damage_event(rng: random.Random, event: Raw) -> None:
    """Extends or breaks one raw event somewhere in it."""
    holders = [each for each in _containers(event) if each]
    if not holders:  # an event of which a fault before has left nothing
        return
    holder = rng.choice(holders)
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    what = rng.randrange(7)
    if what == 0 and isinstance(holder, dict):
        holder["novel"] = json_value(rng)
    elif what == 1:
        del holder[key]
    elif what == 2:
        holder[key] = None
    elif what == 3 and isinstance(holder[key], str):
        holder[key] = rng.choice(("novel", "s1", "m1", "/a", "assistant"))
    elif what == 4 and isinstance(holder, list):
        holder.append(
            rng.choice(({"type": "hologram", "x": 1}, {"op": "swirl", "path": "/a"}, {"id": "x", "role": "critic"}))
        )
    elif what == 5:
        holder[key] = [holder[key]]
    else:
        holder[key] = json_value(rng)


def _containers(value: Any) -> list[Any]:
    found = []
    if isinstance(value, dict | list):
        found.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            found += _containers(each)
    return found
