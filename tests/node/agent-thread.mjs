// One thread of the reference client with an agent at a URL, run by run.
//
// Standard input: {url, threadId, state, tools, accept, runs}; `accept` is the header asked with, the client's own where
// it is absent; a run is {say: {id, content}} or {answer: payload | null} for every open interrupt, null to cancel.
// Standard output: {runs, console}: after each run {contentType, error, states, state, messages, interrupts}, where
// `states` is the state after each event that changed it, and all that was put on the console.
import { HttpAgent } from "@ag-ui/client";

const said = [];
for (const kind of ["log", "warn", "error", "info", "debug"]) {
  console[kind] = (...words) => said.push([kind, ...words.map(String)]);
}

let text = "";
for await (const piece of process.stdin) text += piece;
const { url, threadId, state, tools, accept, runs } = JSON.parse(text);

class Asking extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    return accept ? { ...init, headers: { ...init.headers, Accept: accept } } : init;
  }
}

let contentType = null;
const agent = new Asking({
  url,
  threadId,
  initialState: state,
  fetch: async (...request) => {
    const response = await fetch(...request);
    contentType = response.headers.get("content-type");
    return response;
  },
});
const copy = (value) => JSON.parse(JSON.stringify(value ?? null));

const found = [];
for (const run of runs) {
  const states = [];
  const parameters = { tools };
  if (run.say) {
    agent.addMessage({ role: "user", ...run.say });
  } else {
    parameters.resume = agent.pendingInterrupts.map(({ id }) =>
      run.answer === null
        ? { interruptId: id, status: "cancelled" }
        : { interruptId: id, status: "resolved", payload: run.answer },
    );
  }
  const error = await agent
    .runAgent(parameters, {
      onStateChanged: ({ state }) => {
        states.push(copy(state));
      },
    })
    .then(
      () => null,
      (failure) => String(failure),
    );
  found.push({
    contentType,
    error,
    states,
    state: copy(agent.state),
    messages: copy(agent.messages),
    interrupts: copy(agent.pendingInterrupts),
  });
}
process.stdout.write(JSON.stringify({ runs: found, console: said }));
