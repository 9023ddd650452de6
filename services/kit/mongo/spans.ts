import type { CommandFailedEvent, CommandStartedEvent, MongoClient } from "mongodb";
import type { Span, Telemetry } from "../telemetry/port.ts";
import { errorType } from "../telemetry/traced.ts";

/** Makes a span of each command that is part of a trace: its name and collection, never what it asks or brings. */
export function traceCommands(client: MongoClient, telemetry: Telemetry): void {
  const open = new Map<number, Span>();
  client.on("commandStarted", (event) => {
    if (!telemetry.active()?.isRecording) return;
    open.set(event.requestId, telemetry.start(specOf(event)));
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

/** Most commands name their collection where they name themselves. */
function collectionOf(commandName: string, command: Record<string, unknown>): string | undefined {
  const target = commandName === "getMore" ? command.collection : command[commandName];
  return typeof target === "string" ? target : undefined;
}

/** The server's code where it gave one: its words repeat keys. */
function failedWith({ failure }: CommandFailedEvent, span: Span): void {
  const { code } = failure as { code?: unknown };
  if (typeof code === "number") span.set({ "db.response.status_code": String(code) });
  span.fail(typeof code === "number" ? String(code) : errorType(failure));
}
