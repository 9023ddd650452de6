// Mends the tool calls in an upstream's chat stream: their indexes, ids, types and names. `tool-calls.ts` makes such pieces of
// Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { textLimits } from "../limits.ts";
import { isText } from "../responses/complete-item.ts";
import { stateBeside } from "./kept-state.ts";

interface Call {
  /** The call's place in `tool_calls`. */
  index: number;
  id: string;
  /** "" until it comes. The call is shown when it has come. */
  name: string;
  /** Arguments so far, as much of them as is kept. */
  args: string;
  isPartial: boolean;
  /** State beside the pieces that came before the call's name. */
  beside?: JsonObject;
}

/** An id for a call of an upstream that gives none. `of`: the completion's id. */
export function madeCallId(of: string, index: number): string {
  return `call_${of.replace(/^chatcmpl-/, "")}_${index}`;
}

/** Is it a call of a custom tool? Every other call is one of a function. */
export function callTypeOf(call: JsonObject): "custom" | "function" {
  return isJsonObject(call.custom) ? "custom" : "function";
}

/**
 * The calls of one chat stream as the official clients read them. Each piece has the index of its call, counted from 0. The first piece
 * of a call has an id, a type and a name. Upstreams leave out each of these, or give several calls one index.
 */
export class CallPieces {
  readonly #completionId: string;
  readonly #calls: Call[] = [];
  /** The call that the upstream began last under an index, and the call of an id. */
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();

  constructor(completionId: string) {
    this.#completionId = completionId;
  }

  /** Has a call been shown? */
  get hasCalls(): boolean {
    return this.#calls.some(({ name }) => name !== "");
  }

  /** The pieces as callers see them. The same list where nothing has to change. Throws `UpstreamFailure` at too many calls. */
  take(pieces: JsonValue[]): JsonValue[] {
    const shown = pieces.flatMap((piece) => (isJsonObject(piece) ? this.#take(piece) : []));
    const isSame = shown.length === pieces.length && shown.every((one, at) => one === pieces[at]);
    return isSame ? pieces : shown;
  }

  #take(piece: JsonObject): JsonObject[] {
    const type = callTypeOf(piece);
    const said = isJsonObject(piece[type]) ? piece[type] : {};
    const field = type === "custom" ? "input" : "arguments";
    const name = isText(said.name) ? said.name : "";
    const args = isText(said[field]) ? said[field] : "";
    const call = this.#callOf(piece, name, args) ?? this.#open(piece);
    const isFirst = call.name === "" && name !== "";
    if (isFirst) call.name = name;
    const held = isFirst ? call.args : "";
    keep(call, args);
    // A client can begin a call only if it knows the call's name.
    if (call.name === "") {
      call.beside = { ...call.beside, ...stateBeside(piece) };
      return [];
    }
    const { index, id, beside } = call;
    if (isFirst) {
      const shown = { ...said, name, [field]: held + args };
      const isWhole = piece.index === index && piece.id === id && piece.type === type;
      const isSame = isWhole && said[field] === shown[field];
      return [isSame && !beside ? piece : { ...beside, ...piece, index, id, type, [type]: shown }];
    }
    const isNamed = isText(piece.id) && piece.id !== id;
    const isSame = piece.index === index && !isNamed && name === "" && piece[type] === said;
    if (isSame && (said[field] === args || said[field] === undefined)) return [piece];
    const { id: _id, type: _type, ...rest } = piece;
    return [{ ...rest, index, [type]: args === "" ? {} : { [field]: args } }];
  }

  /** The call that a piece continues. Undefined: the piece begins a call. */
  #callOf({ index, id }: JsonObject, name: string, args: string): Call | undefined {
    const placed = isIndex(index) ? this.#byIndex.get(index) : undefined;
    if (isText(id)) {
      const known = this.#byId.get(id);
      // Only a piece with a name begins a call, under an index of its own. Some servers give each piece a new id.
      if (known) return name !== "" && isIndex(index) && !placed ? undefined : known;
      return name === "" && isIndex(index) ? placed : undefined;
    }
    const isNext = name !== "" && isIndex(index);
    const found = placed ?? (isNext ? undefined : this.#calls.at(-1));
    if (!found || name === "" || found.name === "") return found;
    return name !== found.name || (args !== "" && isWhole(found)) ? undefined : found;
  }

  #open({ index, id }: JsonObject): Call {
    const place = this.#calls.length;
    if (place >= textLimits.pieces) throw new UpstreamFailure("too_large");
    const isFree = isText(id) && !this.#byId.has(id);
    const made = isFree ? id : madeCallId(this.#completionId, place);
    const call = { index: place, id: made, name: "", args: "", isPartial: false };
    this.#calls.push(call);
    this.#byId.set(made, call);
    if (isIndex(index)) this.#byIndex.set(index, call);
    return call;
  }
}

function isIndex(value: JsonValue | undefined): value is number {
  return Number.isInteger(value);
}

function keep(call: Call, args: string): void {
  if (call.args.length + args.length > textLimits.keptChars) call.isPartial = true;
  else if (!call.isPartial) call.args += args;
}

/** Are the call's arguments complete? Then a name behind them begins another call. */
function isWhole({ args, isPartial }: Call): boolean {
  if (isPartial || !args.trimEnd().endsWith("}")) return false;
  try {
    return isJsonObject(JSON.parse(args));
  } catch {
    return false;
  }
}
