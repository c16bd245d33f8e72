// MCP over HTTP in front of a UNIX socket, one connection for each session: for clients that know HTTP only.
// Arguments: the socket, and the prefix of tools and prompts, which such a client does not see. Prints its port.
import { createRequire } from "node:module";
import { createConnection } from "node:net";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

const require = createRequire(`${process.env.IRONCURTAIN_TEST_NODE}/`);
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const [path, prefix] = process.argv.slice(2);
const sessions = new Map();

async function open() {
  const http = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, http),
  });
  const socket = createConnection(path);
  const waiting = new Map(); // requests without an answer, by id, the newest last

  http.onmessage = (message) => {
    if (message.method !== undefined && message.id !== undefined) waiting.set(message.id, message.params);
    const named = message.method === "completion/complete" ? message.params.ref : message.params;
    if (/^(tools\/call|prompts\/get|completion\/complete)$/.test(message.method) && named.name) {
      named.name = prefix + named.name;
    }
    socket.write(JSON.stringify(message) + "\n");
  };

  const take = (message) => {
    let related; // what belongs to no request goes to the stream that clients open with GET
    if (message.method === undefined) {
      waiting.delete(message.id);
      for (const each of [...(message.result?.tools ?? []), ...(message.result?.prompts ?? [])]) {
        each.name = each.name.replace(prefix, "");
      }
    } else if (message.id !== undefined || message.method === "notifications/progress") {
      const token = message.params?.progressToken;
      const asked = [...waiting].filter(([, params]) => token === undefined || params?._meta?.progressToken === token);
      related = asked.at(-1)?.[0];
    } else if (message.method === "notifications/message") {
      related = [...waiting.keys()].at(-1);
    }
    http.send(message, related === undefined ? {} : { relatedRequestId: related }).catch(() => {});
  };

  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (data) => {
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    for (const line of lines) take(JSON.parse(line));
  });
  socket.on("close", () => http.close());
  http.onclose = () => {
    sessions.delete(http.sessionId);
    socket.destroy();
  };
  await http.start();
  return http;
}

const server = createServer(async (request, response) => {
  const id = request.headers["mcp-session-id"];
  const http = id === undefined ? await open() : sessions.get(id);
  if (http === undefined) response.writeHead(404).end();
  else await http.handleRequest(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
