import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { Checkbox, Field, Select, TextArea, TextField } from "../../kit/form.tsx";
import { Empty } from "../../kit/states.tsx";
import { Money } from "../../kit/values.tsx";
import type { Model } from "../../types.ts";
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
import { AddPictures, Pictures } from "./pictures.tsx";
import { type Form, linkTo, numberOf, present, useSettings } from "./settings.ts";

const exampleTools = `[
  {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
      "type": "object",
      "properties": { "city": { "type": "string" } },
      "required": ["city"]
    }
  }
]`;

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

function toolsOf(model: Model, text: string | undefined): { list?: unknown[]; error?: string } {
  if (!text?.trim() || !takesTools(model)) return {};
  try {
    const list = JSON.parse(text);
    if (!Array.isArray(list)) return { error: "A list of tools begins with [ and ends with ]." };
    return list.length > 0 ? { list } : {};
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
}

function takesTools({ tools }: Model): boolean {
  return Array.isArray(tools) ? tools.length > 0 : tools === true;
}

function Options({
  form: { settings, set },
  model,
  toolsError,
}: {
  form: Form;
  model: Model;
  toolsError: string | undefined;
}) {
  const efforts = model.reasoningEfforts ?? [];
  return (
    <section class="card stack options" aria-label="Settings">
      <TextArea
        label="Instructions"
        rows={4}
        placeholder="How the model should answer"
        value={settings.instructions ?? ""}
        onValue={(instructions) => set({ instructions })}
      />
      {efforts.length > 0 && (
        <Select
          label="Reasoning"
          value={settings.effort ?? ""}
          onValue={(effort) => set({ effort })}
          choices={[{ value: "", label: "Model's default" }, ...efforts]}
        />
      )}
      <TextField
        label="Most output"
        type="number"
        min="1"
        {...(model.maxOutputTokens && { max: model.maxOutputTokens })}
        step="1"
        placeholder={model.maxOutputTokens ? String(model.maxOutputTokens) : ""}
        hint={
          model.maxOutputTokens ? `Tokens, at most ${count(model.maxOutputTokens)}.` : "Tokens."
        }
        value={settings.maxOutput ?? ""}
        onValue={(maxOutput) => set({ maxOutput })}
      />
      {takesTools(model) && (
        <Field label="Tools" hint="A JSON list, as the API takes it." error={toolsError}>
          {(tie) => (
            <>
              <textarea
                {...tie}
                class="json"
                rows={settings.tools ? 10 : 2}
                spellcheck={false}
                value={settings.tools ?? ""}
                onInput={(event) => set({ tools: event.currentTarget.value })}
              />
              {!settings.tools && (
                <button type="button" class="small" onClick={() => set({ tools: exampleTools })}>
                  Insert an example
                </button>
              )}
            </>
          )}
        </Field>
      )}
      <Checkbox
        label="Stream the answer"
        checked={settings.stream !== "no"}
        onChecked={(checked) => set({ stream: checked ? "" : "no" })}
      />
    </section>
  );
}

interface Counted {
  input_tokens: number;
  costUsdMicros: number;
  holdUsdMicros: number;
}

/** Ms without typing after which the service is asked for the cost of the message. */
const countPauseMs = 600;

/** The cost of the message before it is sent. While it is empty, only the prices. */
function Estimate({
  model: { pricing, responsesCapable },
  body,
  isEmpty,
}: {
  model: Model;
  body: Record<string, unknown>;
  isEmpty: boolean;
}) {
  const [counted, setCounted] = useState<Counted | undefined>();
  const text = JSON.stringify({ ...body, stream: undefined });
  useEffect(() => {
    // Only `/responses` has a count before the request.
    if (isEmpty || responsesCapable === false) return setCounted(undefined);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const options = { method: "POST", body: JSON.parse(text), signal: abort.signal } as const;
      call<Counted>("/responses/input_tokens", options).then(setCounted, () =>
        setCounted(undefined),
      );
    }, countPauseMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, isEmpty, responsesCapable]);
  return (
    <p class="fine muted estimate">
      {counted ? (
        <>
          {count(counted.input_tokens)} tokens in:{" "}
          <strong>
            <Money micros={counted.costUsdMicros} digits="price" />
          </strong>
          , with the longest answer at most <Money micros={counted.holdUsdMicros} digits="price" />
        </>
      ) : (
        pricing?.inputUsdMicrosPerMillionTokens !== undefined && (
          <>
            <Money micros={pricing.inputUsdMicrosPerMillionTokens} digits="price" /> in and{" "}
            <Money micros={pricing.outputUsdMicrosPerMillionTokens ?? 0} digits="price" /> out, a
            million tokens
          </>
        )
      )}
    </p>
  );
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
