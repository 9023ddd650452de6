// Shows one message, and one answer with its actions.

import { useState } from "preact/hooks";
import { count, milliseconds } from "../../format.ts";
import { CopyButton } from "../../kit/copy.tsx";
import { TextArea } from "../../kit/form.tsx";
import { ErrorText } from "../../kit/states.tsx";
import { Badge, Money } from "../../kit/values.tsx";
import { AnswerText } from "./answer-text.tsx";
import type { FunctionCall } from "./answers.ts";
import { Attachments } from "./attachments.tsx";
import type { Conversation, Turn } from "./chat-turns.ts";
import { prettyJson } from "./pretty-json.ts";

/** The actions that an answer offers now. */
export interface AnswerActs {
  /** Gives the results of the calls for which the model waits. */
  onResults?: ((results: { call_id: string; output: string }[]) => void) | undefined;
  /** Sends the turn once more, in its own place. */
  onAgain?: ((turn: Turn) => void) | undefined;
}

/** A message of the reader. */
export function Said({
  turn: { text, attachments },
  onEdit,
}: {
  turn: Turn;
  /** Takes the message back into the form, to change it. */
  onEdit?: (() => void) | undefined;
}) {
  if (text === "" && attachments.length === 0) return null;
  return (
    <div class="message">
      <article class="said" aria-label="You">
        {attachments.length > 0 && <Attachments attachments={attachments} />}
        <p class="prompt">{text}</p>
      </article>
      {onEdit && text !== "" && (
        <p class="row">
          <button type="button" class="small" onClick={onEdit}>
            Edit message
          </button>
          <CopyButton text={text} label="Copy message" />
        </p>
      )}
    </div>
  );
}

/** The answer to a message, or to the results of functions. `growing` has the one that comes. */
export function AnswerOf({
  turn,
  growing,
  acts: { onResults, onAgain },
}: {
  turn: Turn;
  growing: Conversation["growing"];
  acts: AnswerActs;
}) {
  const isGrowing = turn.answer.state === "running";
  const answer = (isGrowing && growing.value) || turn.answer;
  return (
    <article class="answer" aria-label="The model" aria-busy={isGrowing}>
      {answer.reasoning && (
        <details open={answer.text === "" && isGrowing}>
          <summary>Reasoning</summary>
          <p class="prompt muted">{answer.reasoning}</p>
        </details>
      )}
      {answer.text !== "" && <AnswerText text={answer.text} isGrowing={isGrowing} />}
      {isGrowing && answer.text === "" && <p class="muted">Waiting for the first words…</p>}
      {answer.calls.map((one) => (
        <figure class="code" key={one.call_id} aria-label={`Call of ${one.name}`}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach content that scrolls. */}
          <pre tabIndex={0}>
            <code>{`${one.name}(${prettyJson(one.arguments) ?? one.arguments})`}</code>
          </pre>
        </figure>
      ))}
      <ErrorText error={answer.error} />
      {onResults && answer.calls.length > 0 && (
        <Results calls={answer.calls} onResults={onResults} />
      )}
      <Facts turn={turn} />
      {!isGrowing && <Acts turn={turn} onAgain={onAgain} />}
    </article>
  );
}

function Acts({ turn, onAgain }: { turn: Turn; onAgain: AnswerActs["onAgain"] }) {
  const { answer } = turn;
  const isWhole = answer.state === "completed" || answer.state === "incomplete";
  return (
    <p class="row">
      {answer.text !== "" && <CopyButton text={answer.text} label="Copy answer" />}
      {onAgain && (
        <button type="button" class="small" onClick={() => onAgain(turn)}>
          {isWhole ? "Answer again" : "Try again"}
        </button>
      )}
    </p>
  );
}

/** The reader takes the part of the functions. The result of each call goes back to the model. */
function Results({
  calls,
  onResults,
}: {
  calls: readonly FunctionCall[];
  onResults(results: { call_id: string; output: string }[]): void;
}) {
  const [outputs, setOutputs] = useState<Record<string, string>>({});
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        onResults(calls.map(({ call_id }) => ({ call_id, output: outputs[call_id] ?? "" })));
      }}
    >
      {calls.map((one) => (
        <TextArea
          key={one.call_id}
          label={`Result of ${one.name}`}
          hint="What your program would answer, e.g. JSON."
          required
          rows={2}
          value={outputs[one.call_id] ?? ""}
          onValue={(value) => setOutputs({ ...outputs, [one.call_id]: value })}
        />
      ))}
      <div>
        <button type="submit" class="primary small">
          {calls.length === 1 ? "Send the result" : "Send the results"}
        </button>
      </div>
    </form>
  );
}

function Facts({ turn: { model, answer } }: { turn: Turn }) {
  const { usage, costUsdMicros, firstMs, durationMs, state, id } = answer;
  if (state === "running") return null;
  const reasoning = usage?.output_tokens_details?.reasoning_tokens ?? 0;
  const facts = [
    model,
    usage && `${count(usage.input_tokens)} tokens in`,
    usage && `${count(usage.output_tokens)} out`,
    reasoning > 0 && `${count(reasoning)} of reasoning`,
    firstMs !== undefined && `first words after ${milliseconds(firstMs)}`,
    durationMs !== undefined && milliseconds(durationMs),
  ].filter(Boolean);
  return (
    <p class="row fine muted">
      {state === "stopped" && <Badge tone="warn">stopped</Badge>}
      {state === "incomplete" && <Badge tone="warn">cut at the output bound</Badge>}
      <span class="num wraps">{facts.join(" · ")}</span>
      {costUsdMicros !== undefined && (
        <strong class="charge">
          charged <Money micros={costUsdMicros} digits="price" />
        </strong>
      )}
      {id && <a href={`/console/requests?id=${id}`}>Its record</a>}
    </p>
  );
}
