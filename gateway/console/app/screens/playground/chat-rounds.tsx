// Shows a conversation, with one model or with two side by side.

import { Empty } from "../../kit/states.tsx";
import type { Model } from "../../types.ts";
import { AnswerOf, Said } from "./chat-turn.tsx";
import { type Conversation, rounds, type Turn } from "./chat-turns.ts";

/** A conversation and the model that answers in it. */
export interface Side {
  conversation: Conversation;
  model: Model;
}

/** The actions that a conversation offers now. */
export interface Acts {
  onResults?: (side: Side, results: { call_id: string; output: string }[]) => void;
  onAgain?: (side: Side, turn: Turn) => void;
  /** Gets the turns of a message, one of each conversation. */
  onEdit?: (turns: readonly Turn[]) => void;
}

/** The messages, each with its answers. Two models answer side by side, from the message on at which the second one joined. */
export function Rounds({ sides, acts }: { sides: readonly Side[]; acts: Acts }) {
  const columns = sides.map(({ conversation }) => rounds(conversation.turns.value));
  const length = Math.max(...columns.map((column) => column.length));
  if (length === 0) {
    return (
      <Empty title={`Say something to ${sides.map(({ model }) => model.name).join(" and ")}`}>
        <p>The conversation stays in this browser until you clear it or sign out.</p>
      </Empty>
    );
  }
  return (
    <>
      {Array.from({ length }, (_, place) => {
        const here = columns.map((column) => column[place] ?? []);
        const firsts = here.flatMap(([turn]) => turn ?? []);
        const [said] = firsts;
        if (!said) return null;
        const { onEdit } = acts;
        return (
          <div class="round" key={said.key}>
            <Said turn={said} onEdit={onEdit && (() => onEdit(firsts))} />
            <Answers {...{ sides, here, acts }} isLast={place === length - 1} />
          </div>
        );
      })}
    </>
  );
}

/** The answers to one message. A turn that both conversations share is shown once. */
function Answers({
  sides,
  here,
  acts,
  isLast,
}: {
  sides: readonly Side[];
  /** The turns of each side. */
  here: readonly (readonly Turn[])[];
  acts: Acts;
  isLast: boolean;
}) {
  const isShared = here[0]?.[0]?.key === here[1]?.[0]?.key;
  const shown = here.flatMap((turns, place) => {
    const side = sides[place];
    return side && !(isShared && place > 0) ? [{ side, turns }] : [];
  });
  const all = shown.map(({ side, turns }) => (
    <div class="side-answers" key={side.model.id}>
      {shown.length > 1 && <h3>{nameOf(side.model, turns)}</h3>}
      {turns.map((turn, place) => (
        <AnswerOf
          key={turn.key}
          turn={turn}
          growing={side.conversation.growing}
          acts={isLast && place === turns.length - 1 ? actsOf(side, acts) : {}}
        />
      ))}
    </div>
  ));
  return shown.length > 1 ? <div class="pair">{all}</div> : <>{all}</>;
}

/** The model that answered, which another may have followed since. */
function nameOf({ id, name }: Model, [turn]: readonly Turn[]): string {
  return turn?.model === undefined || turn.model === id ? name : turn.model;
}

function actsOf(side: Side, { onResults, onAgain }: Acts) {
  return {
    onResults:
      onResults && ((results: { call_id: string; output: string }[]) => onResults(side, results)),
    onAgain: onAgain && ((turn: Turn) => onAgain(side, turn)),
  };
}
