// The reference client: bytes of an event stream to an applied conversation, without a network.
//
// Arguments: the task (`apply`), its parameters as JSON, and the folder whose node_modules has the packages. Speaks
// the same JSON lines as the Python workers.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , task, parameters, modules] = process.argv;
if (task !== "apply") throw new Error(`no task ${task}`);
const { HttpAgent } = createRequire(modules + "/")("@ag-ui/client");
const { stream, operations, run_input: inputFile, subscribers = 0, warm_up: warmUp = 2, read_size: readSize = 65536 } =
  JSON.parse(parameters);

const bytes = new Uint8Array(readFileSync(stream));
const input = inputFile ? JSON.parse(readFileSync(inputFile, "utf8")) : { messages: [], state: {} };
let seen = 0;
const told = () => void (seen += 1);

function answer() {
  let start = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (start >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(start, start + readSize));
      start += readSize;
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

async function round() {
  const agent = new HttpAgent({
    url: "http://localhost/",
    threadId: "c1a7f3a2-94b1-4f19-8f1e-2d1c7a9d6e55",
    initialMessages: input.messages,
    initialState: input.state,
    fetch: async () => answer(),
  });
  for (let number = 0; number < subscribers; number += 1)
    agent.subscribe({ onEvent: told, onMessagesChanged: told, onStateChanged: told });
  const begun = performance.now();
  await agent.runAgent({ runId: "0f8e2a64-1c57-4f0d-b6e3-7a1d9c3b5e21" });
  return { seconds: (performance.now() - begun) / 1000, operations };
}

for (let number = 0; number < warmUp; number += 1) await round();
console.log(JSON.stringify({ ready: true }));
for await (const _ of createInterface({ input: process.stdin })) {
  globalThis.gc?.();
  console.log(JSON.stringify(await round()));
}
