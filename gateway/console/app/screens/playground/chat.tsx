import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { TextArea } from "../../kit/form.tsx";
import { Empty } from "../../kit/states.tsx";
import type { Model } from "../../types.ts";
import { Options, toolsOf } from "./chat-options.tsx";
import { ChatTurn, type TurnActs } from "./chat-turn.tsx";
import {
  clear,
  history,
  type Picture,
  send,
  stop,
  type Turn,
  takeBack,
  turns,
  userMessage,
} from "./chat-turns.ts";
import { completionBody } from "./completions.ts";
import { Conversations, useConversations } from "./conversations.tsx";
import { CopyAs } from "./copy-as.tsx";
import { Estimate } from "./estimate.tsx";
import { AddPictures, Pictures } from "./pictures.tsx";
import { linkTo, numberOf, present, useSettings } from "./settings.ts";

export function Chat({ model }: { model: Model }) {
  const form = useSettings("chat");
  const { settings, set } = form;
  const [pictures, setPictures] = useState<Picture[]>([]);
  const tools = toolsOf(model, settings.tools);
  const isResponses = model.responsesCapable !== false;
  const { isLoading } = useConversations();
  const isRunning = turns.value.some(({ answer }) => answer.state === "running");
  const text = settings.input ?? "";
  const bodyOf = (input: unknown[]) =>
    present({
      model: model.id,
      instructions: settings.instructions,
      input: isPlain(input) ? input[0].content : input,
      max_output_tokens: numberOf(settings.maxOutput),
      reasoning:
        settings.effort && model.reasoningEfforts?.includes(settings.effort)
          ? { effort: settings.effort, summary: "auto" }
          : undefined,
      tools: tools.list,
      stream: settings.stream === "no" ? undefined : true,
    });
  const isEmpty = text.trim() === "" && pictures.length === 0;
  // Without a message, the code shows the conversation so far, or an example message.
  const example = turns.value.length === 0 ? [userMessage("Hello", [])] : [];
  const next = bodyOf([...history(), ...(isEmpty ? example : [userMessage(text, pictures)])]);
  const say = () => {
    if (isRunning || text.trim() === "" || tools.error) return;
    const input = [userMessage(text, pictures)];
    const body = bodyOf([...history(), ...input]);
    set({ input: "" });
    setPictures([]);
    send(body, { text, pictures, input }, isResponses);
  };
  const sendAgain = ({ key }: Turn) => {
    const turn = takeBack(key);
    if (!turn || isRunning) return;
    send(bodyOf([...history(), ...turn.input]), turn, isResponses);
  };
  const edit = ({ key }: Turn) => {
    const turn = takeBack(key);
    if (!turn) return;
    set({ input: turn.text });
    setPictures([...turn.pictures]);
  };
  const giveResults: TurnActs["onResults"] = (results) => {
    const input = results.map((one) => ({ type: "function_call_output", ...one }));
    send(bodyOf([...history(), ...input]), { text: "", pictures: [], input }, isResponses);
  };
  return (
    <>
      <div class="play chat">
        <div class="conversation">
          <h2 class="unseen">Conversation</h2>
          <div class="turns" role="log" aria-label="Conversation" aria-busy={isLoading}>
            <Turns
              model={model}
              acts={isRunning ? {} : { onResults: giveResults, onAgain: sendAgain, onEdit: edit }}
            />
            <EndOfTurns />
          </div>
          <Composer
            {...{ model, text, pictures, isRunning }}
            body={next}
            isReady={tools.error === undefined}
            onText={(input) => set({ input })}
            onPictures={setPictures}
            onSay={say}
          />
        </div>
        <div class="stack">
          <Options form={form} model={model} toolsError={tools.error} />
          <Conversations />
        </div>
      </div>
      <CopyAs
        snippet={
          isResponses
            ? { path: "/responses", body: next }
            : { path: "/chat/completions", body: completionBody(next) }
        }
        link={linkTo("chat", model.id, settings)}
      />
    </>
  );
}

/** The form of the next message. */
function Composer({
  model,
  text,
  pictures,
  isRunning,
  body,
  isReady,
  onText,
  onPictures,
  onSay,
}: {
  model: Model;
  text: string;
  pictures: Picture[];
  isRunning: boolean;
  body: Record<string, unknown>;
  isReady: boolean;
  onText(text: string): void;
  onPictures(pictures: Picture[]): void;
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
      {pictures.length > 0 && <Pictures pictures={pictures} onPictures={onPictures} />}
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
        <Estimate model={model} body={body} isEmpty={text.trim() === ""} />
        <div class="row">
          {model.inputModalities?.includes("image") && (
            <AddPictures pictures={pictures} onPictures={onPictures} />
          )}
          {turns.value.length > 0 && (
            <button type="button" onClick={clear}>
              Clear
            </button>
          )}
          {isRunning ? (
            <button type="button" class="primary" onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="submit" class="primary" disabled={!isReady}>
              Send
            </button>
          )}
        </div>
      </div>
    </form>
  );
}

/** The conversation. Only its last turn may get results of tools, or be sent again. */
function Turns({ model, acts: { onResults, onAgain, onEdit } }: { model: Model; acts: TurnActs }) {
  const last = turns.value.length - 1;
  return (
    <>
      {last < 0 && (
        <Empty title={`Say something to ${model.name}`}>
          <p>The conversation stays in this browser until you clear it or sign out.</p>
        </Empty>
      )}
      {turns.value.map((turn, place) => (
        <ChatTurn
          key={turn.key}
          turn={turn}
          acts={place === last ? { onResults, onAgain, onEdit } : { onEdit }}
        />
      ))}
    </>
  );
}

/** A single message of the reader may be sent as plain text. */
function isPlain(input: unknown[]): input is [{ content: string }] {
  const [first, ...rest] = input as { role?: string; content?: unknown }[];
  return rest.length === 0 && first?.role === "user" && typeof first.content === "string";
}

/** Pixels below the window up to which the page still follows an answer. One frame may add some lines. */
const followedPixels = 240;

/** Shows each new turn, and follows its growing answer unless the reader has scrolled away from its end. */
function EndOfTurns() {
  const end = useRef<HTMLDivElement>(null);
  const { length } = turns.value;
  const shown = useRef(length);
  useLayoutEffect(() => {
    const element = end.current;
    if (!element || length === 0) return;
    const isNew = length !== shown.current;
    shown.current = length;
    const isNear = element.getBoundingClientRect().bottom < innerHeight + followedPixels;
    if (isNew || isNear) element.scrollIntoView({ block: "end" });
  }, [turns.value]);
  return <div class="end" ref={end} />;
}
