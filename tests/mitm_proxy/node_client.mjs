// Ask a model through the proxy, twice over one connection where it is kept:
//   node node_client.mjs SOCKET HOST KEY fetch|https BODY
// Prints for each answer one line of JSON: status and body.
import http from "node:http";
import https from "node:https";
import tls from "node:tls";

const [socketPath, host, key, how, body] = process.argv.slice(2);
const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": key };
const url = `https://${host}/v1/messages`;

function tunnel(callback) {
  const request = http.request({ socketPath, method: "CONNECT", path: `${host}:443`, headers: { host: `${host}:443` } });
  request.on("error", callback);
  request.on("connect", (response, socket) => {
    if (response.statusCode !== 200) return callback(new Error(`CONNECT: ${response.statusCode}`));
    const secure = tls.connect({ socket, servername: host, ALPNProtocols: ["http/1.1"] }, () => callback(null, secure));
    secure.on("error", callback);
  });
  request.end();
}

async function withFetch() {
  await fetch("data:,"); // only now is the class of its connections to be had
  const Agent = globalThis[Symbol.for("undici.globalDispatcher.1")].constructor;
  const dispatcher = new Agent({ connect: (options, callback) => tunnel(callback) });
  for (let count = 0; count < 2; count++) {
    const response = await fetch(url, { method: "POST", headers, body, dispatcher });
    const pieces = [];
    for await (const piece of response.body) pieces.push(Buffer.from(piece));
    tell(response.status, pieces);
  }
  await dispatcher.close();
}

async function withHttps() {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = (options, callback) => void tunnel(callback);
  for (let count = 0; count < 2; count++) {
    await new Promise((resolve, reject) => {
      const request = https.request(url, { method: "POST", headers, agent }, (response) => {
        const pieces = [];
        response.on("data", (piece) => pieces.push(piece));
        response.on("end", () => resolve(tell(response.statusCode, pieces)));
      });
      request.on("error", reject);
      request.end(body);
    });
  }
  agent.destroy();
}

function tell(status, pieces) {
  console.log(JSON.stringify({ status, body: Buffer.concat(pieces).toString() }));
}

await (how === "fetch" ? withFetch() : withHttps());
