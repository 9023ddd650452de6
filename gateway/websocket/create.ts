// Answers one message on a socket: admits it, joins it with the conversation so far, and sends the text service's events as
// frames.

import { nameByBeginning } from "#common/words/conversation.ts";
import { ErrorReason, isRefusal, type RefusalError, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { type PeerCall, wireOptions } from "#kit/rpc/peer-call.ts";
import { consume } from "#kit/stream/push-stream.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { failureEvents, newResponse } from "../broken-stream.ts";
import type { Admitted, Edge } from "../context.ts";
import { costHeader } from "../errors.ts";
import { deadlinesMs } from "../limits.ts";
import { ignoredParametersHeader } from "../request.ts";
import { type Chain, type Chains, noItems } from "./chains.ts";
import type { CreateOutcome } from "./events.ts";
import { type Beside, eventsIn, frameOf, type StreamEvent } from "./frames.ts";
import { bodyOf, type Create, callsIn, checkOutputs, createOf, joined } from "./message.ts";

/** One request on a socket, as its socket runs it. */
export interface Running {
  requestId: string;
  /** The header of the handshake. */
  authorization: string | undefined;
  /** The client's name for its conversation. Undefined: the chain names it. */
  conversation: string | undefined;
  /** The message, or the error of reading it. */
  message: JsonObject | { fault: unknown };
  lane: string;
  chains: Chains;
  /** Sends a frame. Await the result where the caller is behind. */
  send(frame: string): Promise<void> | undefined;
  signal: AbortSignal;
  /** The refusal that an error becomes for the caller. */
  told(error: unknown): RefusalError;
}

/** The parts that a request needs. */
export type CreateEdge = Pick<
  Edge,
  "admission" | "text" | "peers" | "payers" | "ids" | "clock" | "reader"
>;

/** The end of a request that was not refused. `refusal`: the error that cut its stream. */
interface Ended {
  outcome: CreateOutcome;
  refusal?: RefusalError;
}

/**
 * Answers a message as `POST /responses` is answered with events. Rejects where it is refused before its first event. A previous response
 * that it names is forgotten where it fails.
 */
export async function answerCreate(edge: CreateEdge, running: Running): Promise<Ended> {
  const { message, chains } = running;
  const previous = isMessage(message) ? message.previous_response_id : undefined;
  const evict = () => {
    if (typeof previous === "string") chains.evict(previous);
  };
  try {
    const ended = await admitted(edge, running);
    if (ended.outcome === "failed") evict();
    return ended;
  } catch (error) {
    evict();
    throw error;
  }
}

function isMessage(message: Running["message"]): message is JsonObject {
  return !("fault" in message && message.fault instanceof Error);
}

async function admitted(edge: CreateEdge, running: Running): Promise<Ended> {
  const { authorization, message } = running;
  const caller = await edge.admission.admit(authorization, Scope.TEXT, "scope");
  if (caller.accountSuspended) refuse(ErrorReason.ACCOUNT_SUSPENDED);
  if (!isMessage(message)) throw message.fault;
  try {
    return await answered(edge, running, { caller, message });
  } catch (error) {
    const told = running.told(error);
    // The service does not know when to try again. Admission does.
    throw told.reason === caller.refusal?.reason ? caller.refusal : error;
  }
}

async function answered(
  edge: CreateEdge,
  running: Running,
  { caller, message }: { caller: Admitted; message: JsonObject },
): Promise<Ended> {
  const create = createOf(message);
  const { previousId, items } = create;
  // Its copy is in the body until the request ends.
  using borrowed = previousId === undefined ? undefined : running.chains.borrow(previousId);
  const chain = borrowed?.chain;
  if (chain && items) checkOutputs(items, chain);
  const input = items && (await joined(chain?.items ?? noItems, items));
  const root = chain?.root ?? rootOf(create);
  const known = new Set([...(chain?.calls ?? []), ...callsIn(items ?? [])]);
  const turn: Turn = { create, caller, input, root, calls: known };
  return await (create.isWarmUp ? warmUp(edge, running, turn) : stream(edge, running, turn));
}

/** The name of a chain that begins with this request. Undefined where the request brings no input. */
function rootOf({ body, items = [] }: Create): string | undefined {
  return items.length === 0 ? undefined : nameByBeginning({ ...body, input: items });
}

/** A checked request. */
interface Turn {
  create: Create;
  caller: Admitted;
  /** All items of the input, those of the chain among them. */
  input: Uint8Array | undefined;
  /** See `Chain`. */
  root: string | undefined;
  calls: ReadonlySet<string>;
}

function callOf({ requestId, signal }: Running, { caller }: Turn, timeoutMs: number): PeerCall {
  return { principal: caller.principal, requestId, timeoutMs, signal };
}

/** Stands behind the input of a warm-up for its check alone. That input may be no whole conversation yet, and some models need a user's message. */
const someMessage = { role: "user", content: "." };

const noUsage = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
  cost: 0,
  costUsdMicros: 0,
};

/** Checks a request and keeps its input as the beginning of a chain. No upstream is asked, and nothing is held. */
async function warmUp(edge: CreateEdge, running: Running, turn: Turn): Promise<Ended> {
  const { create, caller, input = noItems, root, calls } = turn;
  const { lane, requestId } = running;
  const body = await bodyOf(create.body, await joined(input, [someMessage]));
  const call = callOf(running, turn, deadlinesMs.submit);
  const { admission } = caller;
  await edge.peers.text.countInput({ body, admission }, wireOptions(call, undefined));
  const id = edge.ids.make("resp");
  const nowMs = edge.clock.now();
  const created = newResponse({ body, newId: () => id }, nowMs);
  const completed = {
    ...created,
    status: "completed",
    completed_at: Math.floor(nowMs / 1_000),
    usage: noUsage,
  };
  running.chains.keep(lane, { id, items: input, root, calls });
  const say = (step: string, number: number, response: object, beside: Beside) => {
    const event = { type: `response.${step}`, sequence_number: number, response };
    return running.send(frameOf(JSON.stringify(event), beside));
  };
  say("created", 0, created, { lane });
  await say("completed", 1, completed, { lane, headers: { "x-request-id": requestId } });
  return { outcome: "warmed" };
}

const outcomes: Readonly<Record<string, CreateOutcome>> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

async function stream(edge: CreateEdge, running: Running, turn: Turn): Promise<Ended> {
  const { create, caller, input } = turn;
  const { lane, requestId, send } = running;
  const body = await bodyOf(create.body, input);
  const { principal, admission } = caller;
  const conversation = running.conversation ?? turn.root;
  const asked = { operation: Operation.RESPONSES, body, admission, conversation };
  const headers: Record<string, string> = { "x-request-id": requestId };
  let first: Uint8Array | undefined;
  let last: Uint8Array | undefined;
  let end: StreamEvent | undefined;
  let refusal: RefusalError | undefined;
  const take = (bytes: Uint8Array): Promise<void> | undefined => {
    let waits: Promise<void> | undefined;
    for (const event of eventsIn(textOf(bytes))) {
      if (event.type in outcomes) end = event;
      else waits = send(frameOf(event.data, { lane }));
    }
    return waits;
  };
  try {
    const answer = await edge.text.answer(asked, callOf(running, turn, deadlinesMs.text));
    if (answer.kind !== "events") throw new Error("the text service sent no events");
    if (answer.ignored.length > 0) headers[ignoredParametersHeader] = answer.ignored.join(", ");
    await consume(answer.events, (bytes) => {
      if (!first) edge.payers.paid(principal.accountId);
      first ??= bytes;
      last = bytes;
      return take(bytes) ?? true;
    });
    if (!end) throw new Error("the text service sent no end");
  } catch (error) {
    if (!first) throw error;
    if (!end) {
      refusal = running.told(error);
      const told = { ...asked, first, last, newId: () => edge.ids.make("resp"), id: requestId };
      take(Buffer.from(failureEvents(told, refusal, edge.clock.now())));
    }
  }
  if (!end) return { outcome: "failed", ...(refusal ? { refusal } : {}) };
  const outcome = outcomes[end.type] ?? "failed";
  const cost = await keepEnd(edge, running, turn, { data: end.data, outcome });
  if (cost !== undefined) headers[costHeader] = cost;
  await send(frameOf(end.data, { lane, headers }));
  return { outcome, ...(refusal ? { refusal } : {}) };
}

const decoder = new TextDecoder();

function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** The response of an event. An empty one where there is no place to read it, because the caller has paid for the event and gets it. */
async function responseIn(
  { reader }: Pick<CreateEdge, "reader">,
  data: string,
  asking: Parameters<CreateEdge["reader"]["read"]>[2],
): Promise<JsonObject> {
  try {
    const { value } = await reader.read(Buffer.from(data), { only: ["response"] }, asking);
    return isJsonObject(value.response) ? value.response : {};
  } catch (error) {
    if (isRefusal(error)) return {};
    throw error;
  }
}

/** Keeps a finished response as a chain. Answers what it was charged, where it says so. */
async function keepEnd(
  edge: CreateEdge,
  { lane, chains }: Running,
  { caller, input, root, calls }: Turn,
  { data, outcome }: { data: string; outcome: CreateOutcome },
): Promise<string | undefined> {
  const { accountId } = caller.principal;
  // It belongs to no wait: the answer is paid for, whether or not its caller is still there.
  const asking = { accountId, signal: new AbortController().signal };
  const response = await responseIn(edge, data, asking);
  const output: JsonValue[] = Array.isArray(response.output) ? response.output : [];
  if (outcome !== "failed" && input && typeof response.id === "string") {
    const chain: Chain = {
      id: response.id,
      items: await joined(input, output),
      root,
      calls: new Set([...calls, ...callsIn(output)]),
    };
    chains.keep(lane, chain);
  }
  const cost = isJsonObject(response.usage) ? response.usage.costUsdMicros : undefined;
  return cost === undefined ? undefined : String(cost);
}
