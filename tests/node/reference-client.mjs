// Runs streams through the reference client, one stream after another.
//
// Standard input: a JSON array of {runInput, events, looks}. Standard output: a JSON array, for each stream, of
// {rejectedAt, error, views}: the position of the event that ended it (null when all were accepted), and what the client
// held, as {messages, state}, before each position that `looks` names and, last, at the end. A value the client has tied
// into a circle is reported as "(circular)".
//
// Events are handed over one per macrotask. The client applies them asynchronously, and what is still queued when a
// stream fails would be lost otherwise.
import { AbstractAgent } from "@ag-ui/client";
import { Observable } from "rxjs";

console.warn = console.error = () => {};

class Replay extends AbstractAgent {
  constructor({ runInput, events, looks }) {
    super({ threadId: runInput.threadId, initialMessages: runInput.messages, initialState: runInput.state });
    this.events = events;
    this.looks = looks;
    this.views = [];
    this.position = 0;
  }

  look() {
    this.views.push({ messages: printable(this.messages), state: printable(this.state ?? null) });
  }

  run() {
    return new Observable((subscriber) => {
      const next = () => {
        if (subscriber.closed) return;
        if (this.looks.includes(this.position)) this.look();
        if (this.position === this.events.length) return subscriber.complete();
        subscriber.next(this.events[this.position]);
        if (subscriber.closed) return;
        this.position += 1;
        setImmediate(next);
      };
      setImmediate(next);
    });
  }
}

function printable(value) {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return "(circular)";
  }
}

let text = "";
for await (const piece of process.stdin) text += piece;
const results = [];
for (const stream of JSON.parse(text)) {
  const agent = new Replay(stream);
  let error = null;
  try {
    await agent.runAgent({ runId: stream.runInput.runId });
  } catch (failure) {
    error = String(failure?.message ?? failure);
  }
  agent.look();
  results.push({ rejectedAt: error === null ? null : agent.position, error, views: agent.views });
}
process.stdout.write(JSON.stringify(results));
