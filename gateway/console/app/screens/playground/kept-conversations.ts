// The conversations that this browser keeps. `conversations.tsx` lists them.

import { signal } from "@preact/signals";
import { ApiError } from "../../api.ts";
import { forgetKept, type Kept, keep, keptOf } from "../../browser-store.ts";
import { session } from "../../session.ts";
import type { Answer } from "./answers.ts";
import type { Attachment } from "./attachments.tsx";
import type { Turn } from "./chat-turns.ts";

/** A turn in the browser's store. A file's address in the page and an error's class do not last. */
type KeptTurn = Omit<Turn, "key" | "attachments" | "answer"> & {
  attachments: Omit<Attachment, "blobUrl">[];
  answer: Omit<Answer, "error"> & { error?: Record<string, unknown> };
};

type KeptConversation = Kept<KeptTurn[]>;

/** Those of this session's key, newest first. Undefined until they have come from the store. */
export const keptConversations = signal<readonly KeptConversation[] | undefined>(undefined);

// Another key has others.
session.subscribe((value) => {
  if (!value) keptConversations.value = undefined;
});

export async function loadConversations(): Promise<void> {
  keptConversations.value = await keptOf<KeptTurn[]>("chat");
}

export async function keepConversation(id: string, turns: readonly Turn[]): Promise<void> {
  const kept = await keep("chat", id, turns.map(keptTurn));
  if (kept) keptConversations.value &&= [kept, ...without(id)];
}

export async function forgetConversation(id: string): Promise<void> {
  await forgetKept("chat", id);
  keptConversations.value &&= without(id);
}

/** The list is changed in the page. Its store is read once, because conversations with files are large. */
function without(id: string): KeptConversation[] {
  return (keptConversations.value ?? []).filter((one) => one.id !== id);
}

/** The first words of a conversation. */
export function titleOf({ value }: KeptConversation): string {
  return value[0]?.text.trim() || "Without words";
}

/** The id of the model that answered last, and a separator. "" where it is not known. */
export function modelOf({ value }: KeptConversation): string {
  const model = value.at(-1)?.model;
  return model ? `${model} · ` : "";
}

/** The turns of a conversation. The page gives them keys. */
export function turnsOf({ value }: KeptConversation): Omit<Turn, "key">[] {
  return value.map((turn) => ({
    ...turn,
    attachments: turn.attachments.map(attachmentOf),
    answer: answerOf(turn.answer),
  }));
}

function keptTurn({ text, attachments, input, model, answer }: Turn): KeptTurn {
  const { error, ...rest } = answer;
  return {
    ...{ text, input },
    ...(model !== undefined && { model }),
    attachments: attachments.map(({ blobUrl: _blobUrl, ...kept }) => kept),
    answer: error === undefined ? rest : { ...rest, error: errorFields(error) },
  };
}

function errorFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof ApiError)) return {};
  return { message: error.message, code: error.code, requestId: error.requestId };
}

function answerOf({ error, ...answer }: KeptTurn["answer"]): Answer {
  if (answer.state === "running") {
    const message = "The page was left while the answer came.";
    return { ...answer, state: "failed", error: new ApiError(0, { message }, null) };
  }
  if (!error) return answer;
  const { requestId = null, ...fields } = error;
  return { ...answer, error: new ApiError(0, fields, requestId as string | null) };
}

function attachmentOf(attachment: Omit<Attachment, "blobUrl">): Attachment {
  const [head = "", data = ""] = attachment.dataUrl.split(",", 2);
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const type = /^data:([^;]+)/.exec(head)?.[1] ?? "";
  return { ...attachment, blobUrl: URL.createObjectURL(new Blob([bytes], { type })) };
}
