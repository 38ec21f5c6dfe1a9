// Runs the reference client against a URL, once for each `Accept` header.
//
// Arguments: the URL and the headers. Standard output: a JSON array, for each header, of {contentType, error, result,
// newMessages, messages, state}; `error` is null when the run was accepted.
import { HttpAgent } from "@ag-ui/client";

console.warn = console.error = () => {};

class Asking extends HttpAgent {
  requestInit(input) {
    const init = super.requestInit(input);
    return { ...init, headers: { ...init.headers, Accept: this.accept } };
  }
}

const [url, ...accepts] = process.argv.slice(2);
const found = [];
for (const accept of accepts) {
  let contentType = null;
  const agent = new Asking({
    url,
    threadId: "t",
    fetch: async (...request) => {
      const response = await fetch(...request);
      contentType = response.headers.get("content-type");
      return response;
    },
  });
  agent.accept = accept;
  const run = await agent.runAgent({ runId: "r" }).then(
    ({ result, newMessages }) => ({ error: null, result, newMessages }),
    (error) => ({ error: String(error), result: null, newMessages: [] }),
  );
  found.push({ contentType, ...run, messages: agent.messages, state: agent.state });
}
process.stdout.write(JSON.stringify(found));
