// The playground of text models.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { DropArea } from "../../kit/drop.tsx";
import { TextArea } from "../../kit/form.tsx";
import type { Model } from "../../types.ts";
import { AddFiles, type Attachment, Attachments, kindsTaken, withFiles } from "./attachments.tsx";
import { Options } from "./chat-options.tsx";
import { askOf, faultsOf } from "./chat-request.ts";
import { Rounds, type Side } from "./chat-rounds.tsx";
import {
  type Ask,
  chat,
  clear,
  compared,
  type Message,
  type Turn,
  userMessage,
} from "./chat-turns.ts";
import { completionBody } from "./completions.ts";
import { Conversations, useConversations } from "./conversations.tsx";
import { CopyAs } from "./copy-as.tsx";
import { Estimate } from "./estimate.tsx";
import { messagesBody } from "./messages.ts";
import { linkTo, useSettings } from "./settings.ts";
import type { Snippet } from "./snippets.ts";

/** A conversation with a model, or the same one with two models side by side. */
export function Chat({ model, models }: { model: Model; models: readonly Model[] }) {
  const form = useSettings("chat");
  const { settings, set } = form;
  const [attachments, setAttachments] = useState<Attachment[]>([]);
  const [fault, setFault] = useState<string | undefined>();
  const { isLoading } = useConversations();
  const others = models.filter(({ id }) => id !== model.id);
  const versus = others.find(({ id }) => id === settings.versus);
  const sides: Side[] = [{ conversation: chat, model }];
  if (versus) sides.push({ conversation: compared, model: versus });
  const taken = kindsTaken(sides.map((side) => side.model));
  const addFiles = async (files: File[]) => {
    const added = await withFiles(attachments, files, taken);
    setAttachments(added.attachments);
    setFault(added.fault);
  };
  const isRunning = sides.some(({ conversation }) => conversation.isRunning());
  const text = settings.input ?? "";
  const next = (side: Side, input: unknown[]) =>
    askOf(side.model, settings, [...side.conversation.history(), ...input]);
  const say = () => {
    const isFaulty = Object.keys(faultsOf(model, settings)).length > 0;
    if (isRunning || isFaulty || text.trim() === "") return;
    const message: Message = { text, attachments, input: [userMessage(text, attachments)] };
    const asks = sides.map((side) => next(side, message.input));
    // A second model that is not beside the first one now misses this message. It joins again when the reader chooses it.
    set({ input: "", versus: versus?.id ?? "" });
    setAttachments([]);
    for (const [place, ask] of asks.entries()) sides[place]?.conversation.send(ask, message);
  };
  const sendAgain = (side: Side, { key }: Turn) => {
    const turn = side.conversation.takeBack(key);
    if (turn) side.conversation.send(next(side, turn.input), turn);
  };
  const edit = (turns: readonly Turn[]) => {
    const [turn] = turns;
    if (!turn) return;
    for (const { key } of turns) for (const { conversation } of sides) conversation.takeBack(key);
    set({ input: turn.text });
    setAttachments([...turn.attachments]);
  };
  const giveResults = (side: Side, results: object[]) => {
    const input = results.map((one) => ({ type: "function_call_output", ...one }));
    side.conversation.send(next(side, input), { text: "", attachments: [], input });
  };
  const compareWith = (id: string) => {
    if (!versus) compared.follow(chat);
    set({ versus: id });
  };
  const acts = { onResults: giveResults, onAgain: sendAgain, onEdit: edit };
  // Without a message, the code shows the conversation so far, or an example message.
  const example = chat.turns.value.length === 0 ? [userMessage("Hello", [])] : [];
  const isEmpty = text.trim() === "" && attachments.length === 0;
  // They have the whole conversation, so they are made when a part of them has changed.
  const shown = useMemo(
    () => sides.map((side) => next(side, isEmpty ? example : [userMessage(text, attachments)])),
    [settings, attachments, model, versus, chat.turns.value, compared.turns.value],
  );
  return (
    <>
      <div class="play chat">
        <DropArea class="conversation" onFiles={addFiles}>
          <h2 class="unseen">Conversation</h2>
          <div class="turns" role="log" aria-label="Conversation" aria-busy={isLoading}>
            <Rounds sides={sides} acts={isRunning ? {} : acts} />
            <EndOfTurns />
          </div>
          <Composer
            {...{ sides, text, attachments, isRunning, taken, fault }}
            asks={shown}
            onText={(input) => set({ input })}
            onFiles={addFiles}
            onAttachments={(left) => {
              setAttachments(left);
              setFault(undefined);
            }}
            onSay={say}
          />
        </DropArea>
        <div class="stack">
          <Options {...{ form, model, others, isRunning }} onCompare={compareWith} />
          <Conversations />
        </div>
      </div>
      <RequestAsCode ask={shown[0]} link={linkTo("chat", model.id, settings)} />
    </>
  );
}

function RequestAsCode({ ask, link }: { ask: Ask | undefined; link: string }) {
  const snippets = useMemo(() => ask && snippetsOf(ask), [ask]);
  return snippets ? <CopyAs {...snippets} link={link} /> : null;
}

/** The request in the model's own API, and in Anthropic's where it can be sent there. */
function snippetsOf({ body, isResponses }: Ask): { snippet: Snippet; others: Snippet[] } {
  const messages = messagesBody(body);
  return {
    snippet: isResponses
      ? { path: "/responses", body }
      : { path: "/chat/completions", body: completionBody(body) },
    others: messages ? [{ path: "/messages", body: messages }] : [],
  };
}

/** The form of the next message. */
function Composer({
  sides,
  text,
  attachments,
  isRunning,
  taken,
  fault,
  asks,
  onText,
  onFiles,
  onAttachments,
  onSay,
}: {
  sides: readonly Side[];
  text: string;
  attachments: Attachment[];
  isRunning: boolean;
  taken: ReturnType<typeof kindsTaken>;
  /** The reason why a file was not added, in words. */
  fault: string | undefined;
  /** The next request of each side. */
  asks: readonly Ask[];
  onText(text: string): void;
  onFiles(files: File[]): void;
  onAttachments(attachments: Attachment[]): void;
  onSay(): void;
}) {
  return (
    <form
      class="card composer"
      onSubmit={(event) => {
        event.preventDefault();
        onSay();
      }}
    >
      {attachments.length > 0 && (
        <Attachments attachments={attachments} onAttachments={onAttachments} />
      )}
      {fault && (
        <p class="field-error" role="alert">
          {fault}
        </p>
      )}
      <TextArea
        label="Message"
        rows={3}
        required
        placeholder="Enter sends, Shift and Enter begin a new line"
        value={text}
        onValue={onText}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          onSay();
        }}
      />
      <div class="pay">
        <div class="estimate">
          {asks.map((ask, place) => (
            <Estimate
              key={sides[place]?.model.id}
              model={sides[place]?.model}
              ask={ask}
              isEmpty={text.trim() === ""}
              isNamed={asks.length > 1}
            />
          ))}
        </div>
        <div class="row">
          <AddFiles taken={taken} onFiles={onFiles} />
          {chat.turns.value.length > 0 && (
            <button type="button" onClick={clear}>
              Clear
            </button>
          )}
          {isRunning ? (
            <button
              type="button"
              class="primary"
              onClick={() => {
                for (const { conversation } of sides) conversation.stop();
              }}
            >
              Stop
            </button>
          ) : (
            <button type="submit" class="primary">
              Send
            </button>
          )}
        </div>
      </div>
    </form>
  );
}

/** Pixels below the window up to which the page still follows an answer. One frame may add some lines. */
const followedPixels = 240;

/** Shows each new turn, and follows its growing answer unless the reader has scrolled away from its end. */
function EndOfTurns() {
  const end = useRef<HTMLDivElement>(null);
  const { length } = chat.turns.value;
  const shown = useRef(length);
  useLayoutEffect(() => {
    const element = end.current;
    if (!element || length === 0) return;
    const isNew = length !== shown.current;
    shown.current = length;
    const isNear = element.getBoundingClientRect().bottom < innerHeight + followedPixels;
    if (isNew || isNear) element.scrollIntoView({ block: "end" });
  }, [chat.turns.value, chat.growing.value, compared.turns.value, compared.growing.value]);
  return <div class="end" ref={end} />;
}
