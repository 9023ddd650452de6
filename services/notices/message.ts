// Writes the message about some notices, for a webhook and for a mail.

import { factsOf } from "./notice.ts";
import type { Message, Told } from "./way.ts";

/** The page of the documentation with a section for each alert. */
const runbook = "docs/operations.md";

/** A message in the form in which it is sent. */
export interface Written {
  messageId: string;
  /** JSON, for a webhook. */
  body: string;
  /** For a mail: one line, and plain text. */
  subject: string;
  text: string;
}

/** Writes a message about notices. */
export function written({ messageId, at, notices }: Message): Written {
  const documents = notices.map(documentOf);
  const [first] = documents;
  const others = documents.length > 1 ? ` (and ${documents.length - 1} more)` : "";
  return {
    messageId,
    body: bodyOf("operator.notices", at, { notices: documents }),
    subject: `[genmesh] ${first?.status}: ${first?.text}${others}`,
    text: documents.map(paragraphOf).join("\n"),
  };
}

/** Writes the message of a test. */
export function testMessage(messageId: string, now: number): Written {
  const text = "This is a test. An operator asked for it.";
  return {
    messageId,
    body: bodyOf("operator.test", now, { text }),
    subject: "[genmesh] test",
    text: `${text}\n`,
  };
}

function bodyOf(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: isoOf(at), data });
}

function documentOf({ noticeId, kind, subject, beganAt, what }: Told) {
  const { severity, alert, text } = factsOf({ kind, subject });
  return {
    ...{ id: noticeId, status: what, severity, kind, subject, text },
    ...{ beganAt: isoOf(beganAt), runbook: alert && `${runbook}#${alert.toLowerCase()}` },
  };
}

function paragraphOf({
  status,
  severity,
  text,
  beganAt,
  runbook: to,
}: ReturnType<typeof documentOf>) {
  const lines = [`${status} (${severity}): ${text}`, `  since ${beganAt}`];
  if (to && status !== "ended") lines.push(`  what to do: ${to}`);
  return `${lines.join("\n")}\n`;
}

const isoOf = (ms: number) => new Date(ms).toISOString();
