import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fastify from "fastify";
import { Pool } from "undici";
import { jsonAnswer } from "./answers.ts";

// The least work below one process of genmesh: only what the API needs, with the same parts. The first argument chooses how much: answering
// a body from memory, parsing and writing its JSON, asking the model server, or one durable write. All requests of a turn share a write.
// The second argument is the mock's port. It prints its own port.

/** Each includes the work of those before it. */
export type FloorLayer = "answer" | "parse" | "forward" | "write";

const [, , layer = "write", upstreamPort = ""] = process.argv;
const order: readonly string[] = ["answer", "parse", "forward", "write"] satisfies FloorLayer[];
const does = (wanted: FloorLayer) => order.indexOf(layer) >= order.indexOf(wanted);

const fromMemory = jsonAnswer();
const upstream = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: 64 });
const folder = mkdtempSync(join(tmpdir(), "genmesh-bench-floor-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
process.on("SIGTERM", () => process.exit());

const database = new DatabaseSync(join(folder, "floor.sqlite"));
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
database.exec("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
const insert = database.prepare("INSERT INTO entry (text) VALUES (?)");
/** About as large as an entry of a journal. */
const entry = "x".repeat(300);

let waiting: (() => void)[] = [];

/** One commit for all that wait in this turn of the event loop. */
function write(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) > 1) return;
    setImmediate(() => {
      const together = waiting;
      waiting = [];
      database.exec("BEGIN IMMEDIATE");
      for (let i = 0; i < together.length; i++) insert.run(entry);
      database.exec("COMMIT");
      for (const written of together) written();
    });
  });
}

function changed(body: Buffer): string {
  const request = JSON.parse(body.toString("utf8"));
  return JSON.stringify({ ...request, model: "bench", instructions: "Be brief." });
}

const app = fastify({ bodyLimit: 32 * 1_024 * 1_024 });
app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_, body, done) =>
  done(null, body),
);
app.post("*", async (request, reply) => {
  const bytes = request.body as Buffer;
  const body = does("parse") ? changed(bytes) : bytes;
  if (!does("forward")) return reply.type("application/json").send(fromMemory);
  const headers = { "content-type": "application/json" };
  const answer = await upstream.request({ path: request.url, method: "POST", headers, body });
  if (String(answer.headers["content-type"]).startsWith("text/event-stream")) {
    return reply.type("text/event-stream").send(answer.body);
  }
  const text = await answer.body.text();
  if (does("write")) await write();
  return reply.type("application/json").send(JSON.stringify(JSON.parse(text)));
});
await app.listen({ port: 0, host: "127.0.0.1" });
const address = app.server.address();
process.stdout.write(`${typeof address === "object" ? address?.port : ""}\n`);
