// Adds spans to the commands of MongoDB. So no store needs code for them.

import type { Span } from "@opentelemetry/api";
import type { CommandFailedEvent, CommandStartedEvent, MongoClient } from "mongodb";
import { type Attributes, errorType, failSpan, isTraced, startSpan } from "#kit/telemetry/spans.ts";

/** Makes a span of each command within a trace: its name and collection, never its content. */
export function traceCommands(client: MongoClient): void {
  const open = new Map<number, Span>();
  client.on("commandStarted", (event) => {
    if (!isTraced()) return;
    open.set(event.requestId, startSpan(specOf(event)));
  });
  const end = (requestId: number, failed?: CommandFailedEvent) => {
    const span = open.get(requestId);
    if (!span) return;
    open.delete(requestId);
    if (failed) failedWith(failed, span);
    span.end();
  };
  client.on("commandSucceeded", (event) => end(event.requestId));
  client.on("commandFailed", (event) => end(event.requestId, event));
}

function specOf({ commandName, command }: CommandStartedEvent) {
  const target = collectionOf(commandName, command);
  return {
    family: "db.client",
    name: target === undefined ? commandName : `${commandName} ${target}`,
    attributes: {
      "db.system.name": "mongodb",
      "db.operation.name": commandName,
      "db.collection.name": target,
    },
  } as const;
}

/** Most commands hold the collection under their own name. */
function collectionOf(commandName: string, command: Record<string, unknown>): string | undefined {
  const target = commandName === "getMore" ? command.collection : command[commandName];
  return typeof target === "string" ? target : undefined;
}

/** The server's code where it gave one. Its text repeats keys. */
function failedWith({ failure }: CommandFailedEvent, span: Span): void {
  const { code } = failure as { code?: unknown };
  if (typeof code === "number") {
    span.setAttributes({ "db.response.status_code": String(code) } satisfies Attributes);
  }
  failSpan(span, typeof code === "number" ? String(code) : errorType(failure));
}
