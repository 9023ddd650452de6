import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Behaviour, Break, Wording } from "./scripted-behaviours.ts";
import { brokenEvent, hugeParts, jsonAnswer, type Part, streamParts } from "./scripted-formats.ts";
import type { SeenRequest } from "./scripted-upstream.ts";

type Ok = Extract<Behaviour, { kind: "ok" }>;

/** Answers one request. */
export async function answer(
  behaviour: Behaviour,
  seen: SeenRequest,
  response: ServerResponse,
): Promise<void> {
  switch (behaviour.kind) {
    case "ok":
      return answerWell(behaviour, seen, response);
    case "status":
      return answerStatus(behaviour, response);
    case "hang":
      return;
    case "drop":
      if (behaviour.reusedOnly && !isReused(response))
        return answerWell({ kind: "ok" }, seen, response);
      return destroy(response);
    case "garbage":
      response.setHeader("content-type", behaviour.contentType ?? "application/json");
      response.end(behaviour.body ?? "<html>not what you asked for</html>");
      return;
    case "json":
      response.writeHead(behaviour.status ?? 200, { "content-type": "application/json" });
      response.end(JSON.stringify(behaviour.body));
      return;
    case "events":
      return answerEvents(behaviour, response);
    case "huge":
      return answerHuge(behaviour, seen, response);
    case "custom":
      return behaviour.handle(seen, response);
  }
}

async function answerWell(ok: Ok, seen: SeenRequest, response: ServerResponse): Promise<void> {
  if (ok.firstByteDelayMs) await delay(ok.firstByteDelayMs);
  await ok.firstByteAfter;
  if (response.destroyed) return;
  if (ok.afterwards === "close") response.setHeader("connection", "close");
  if (!seen.body?.stream || seen.path.endsWith("/compact")) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(jsonAnswer(seen, ok)));
  } else {
    beginStream(response);
    if (!(await writeStream(ok, seen, response))) return;
    response.end();
  }
  if (ok.afterwards === "destroy") response.on("finish", () => response.socket?.destroy());
}

/** Writes a whole stream. False where the script breaks it off or the caller left. */
async function writeStream(ok: Ok, seen: SeenRequest, response: ServerResponse): Promise<boolean> {
  let deltas = 0;
  for (const part of streamParts(seen, ok)) {
    const isDue = ok.break !== undefined && deltas >= ok.break.after && !part.isOpening;
    if (ok.break && isDue) return breakOff(ok.break, ok, seen, response);
    if (part.isDelta && ok.deltaDelayMs) await delay(ok.deltaDelayMs);
    if (!(await write(response, seen, part.text, ok.pieceBytes))) return false;
    if (part.isDelta) {
      deltas++;
      await ok.restAfter;
    }
  }
  return true;
}

async function breakOff(
  broken: Break,
  wording: Wording,
  seen: SeenRequest,
  response: ServerResponse,
): Promise<boolean> {
  const last: Part | undefined = brokenEvent(broken, seen, wording);
  if (last) await write(response, seen, last.text);
  if (broken.how === "hang") return false;
  if (broken.how !== "destroy") return true;
  // The written bytes must arrive before the cut.
  await delay(20);
  destroy(response);
  return false;
}

function answerStatus(
  behaviour: Extract<Behaviour, { kind: "status" }>,
  response: ServerResponse,
): void {
  const { status, code = null, param = null, message = "UPSTREAM SECRET WORDS" } = behaviour;
  response.writeHead(status, { "content-type": "application/json", ...behaviour.headers });
  response.end(JSON.stringify({ error: { message, type: "upstream_error", param, code } }));
}

function answerEvents(
  behaviour: Extract<Behaviour, { kind: "events" }>,
  response: ServerResponse,
): void {
  beginStream(response);
  for (const event of behaviour.events) {
    if (typeof event === "string") response.write(event);
    else {
      const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
      response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
    }
  }
  response.end(behaviour.done === false ? undefined : "data: [DONE]\n\n");
}

async function answerHuge(
  behaviour: Extract<Behaviour, { kind: "huge" }>,
  seen: SeenRequest,
  response: ServerResponse,
): Promise<void> {
  beginStream(response);
  for (const part of hugeParts(seen, behaviour.events, "x".repeat(behaviour.deltaBytes))) {
    if (!(await write(response, seen, part.text))) return;
  }
  response.end();
}

function beginStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
}

/** Writes and waits until the socket takes more. False where the caller has left. */
async function write(
  response: ServerResponse,
  seen: SeenRequest,
  text: string,
  pieceBytes?: number,
): Promise<boolean> {
  const bytes = Buffer.from(text);
  const step = pieceBytes ?? bytes.length;
  for (let at = 0; at < bytes.length; at += step) {
    if (response.destroyed) return false;
    const piece = bytes.subarray(at, at + step);
    const hasRoom = response.write(piece);
    seen.writtenBytes += piece.length;
    if (pieceBytes) await new Promise((resolve) => setImmediate(resolve));
    if (!hasRoom && !response.destroyed) {
      await drained(response);
    }
  }
  return !response.destroyed;
}

/** Resolves when the socket takes more bytes, or is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off("drain", go);
      response.off("close", go);
      resolve();
    };
    response.on("drain", go);
    response.on("close", go);
  });
}

function isReused(response: ServerResponse): boolean {
  return (response.socket?.bytesWritten ?? 0) > 0;
}

/** Cuts the connection. The record does not count this as a caller that left. */
function destroy(response: ServerResponse): void {
  cutHere.add(response);
  response.socket?.destroy();
}

const cutHere = new WeakSet<ServerResponse>();

/** Did the upstream itself cut this answer off? */
export function wasCutHere(response: ServerResponse): boolean {
  return cutHere.has(response);
}
