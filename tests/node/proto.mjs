// Encodes and decodes envelopes with the reference's binary wire.
//
// Standard input: {encode: [events], decode: [envelopes in hex]}. Standard output: {encoded: [envelopes in hex],
// decoded: [{event} or {error}]}.
import { decode, encode } from "@ag-ui/proto";

console.warn = () => {};

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
const asked = JSON.parse(text);

const read = (envelope) => {
  try {
    return { event: decode(Buffer.from(envelope, "hex")) };
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
};

const encoded = asked.encode.map((event) => Buffer.from(encode(event)).toString("hex"));
process.stdout.write(JSON.stringify({ encoded, decoded: asked.decode.map(read) }));
