import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fastify from "fastify";
import { Pool } from "undici";
import { jsonAnswer } from "./answers.ts";

// The ground below one process of genmesh: what the API cannot do without, on the same parts, and nothing else. Its first
// argument says how much of it: a body taken and answered from memory; its JSON parsed and written anew; the model server
// asked; one durable write, shared by all that ask in the same turn. The second is the mock's port. It prints its own.

/** Each does what those before it do. */
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
/** About what an entry of a journal holds. */
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
