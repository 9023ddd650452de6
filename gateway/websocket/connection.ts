// Runs one open WebSocket: reads its messages, answers them lane by lane, pings, and closes. `create.ts` answers a message.

import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { ErrorReason, errorRow, isRefusal, RefusalError } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { noteWork } from "#kit/edge/connection-bounds.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import type { Edge } from "../context.ts";
import { CallerLeftError } from "../errors.ts";
import { Chains } from "./chains.ts";
import { answerCreate, type CreateEdge } from "./create.ts";
import type { SocketEvents } from "./events.ts";
import { errorFrame } from "./frames.ts";
import { Lanes } from "./lanes.ts";
import {
  maxLanes,
  maxLostPings,
  maxUnreadBytes,
  maxWaiting,
  pingMs,
  socketLifeMs,
} from "./limits.ts";
import { laneOf } from "./message.ts";
import { boundUnfinished, type TakenRoom } from "./unfinished.ts";

/** The parts that a socket needs. */
export type ConnectionEdge = CreateEdge & Pick<Edge, "bodies" | "events">;

/** The parts of a socket. */
interface ConnectionOptions {
  edge: ConnectionEdge;
  events: SocketEvents;
  /** Shares the bytes of kept conversations. */
  share: FairShare;
  principal: Principal;
  authorization: string | undefined;
  /** The client's name for its conversation, of the handshake. */
  conversation: string | undefined;
  raw: Socket;
  /** Requests that may be under way at once, each in a lane of its own. */
  inFlight: number;
}

/** A message that waits for its turn. */
interface Waiting {
  lane: string;
  message: JsonObject | { fault: unknown };
  room: Disposable;
}

/** The route in logs and metrics. */
const route = "/v1/responses";
/** The method in logs and metrics, because a request on a socket has none. */
const method = "WEBSOCKET";

/** One open WebSocket. The requests of a lane are answered one after the other, and lanes in turn, or side by side where that is set. */
export class Connection {
  readonly principal: Principal;
  readonly authorization: string | undefined;
  readonly #ws: WebSocket;
  readonly #options: ConnectionOptions;
  readonly #chains: Chains;
  readonly #openedAtMs: number;
  readonly #left = new AbortController();
  readonly #lanes = new Lanes<Waiting>();
  /** Names of lanes that were used. */
  readonly #names = new Set<string>();
  /** Messages that are not under way yet, those that are being read among them. */
  #waiting = 0;
  /** Messages that found no place since a request last ended. */
  #surplus = 0;
  readonly #running = new Set<AbortController>();
  #reading: Promise<void> = Promise.resolve();
  /** Reasons for which the connection is not read at present. */
  #pauses = 0;
  #pingedAtMs: number;
  /** Pings in a row behind which no byte came. */
  #lostPings = 0;
  /** Bytes that had come at the last ping. */
  #heardBytes = 0;
  #takesMore = true;
  /** The code with which it closes as soon as no request is under way, and the error that comes before. */
  #closing: { code: number; refusal?: RefusalError | undefined } | undefined;

  constructor(ws: WebSocket, options: ConnectionOptions) {
    this.#ws = ws;
    this.#options = options;
    this.principal = options.principal;
    this.authorization = options.authorization;
    const { edge, events, share, principal, raw } = options;
    const { accountId } = principal;
    this.#chains = new Chains({ accountId, share, events });
    this.#openedAtMs = edge.clock.steady();
    this.#pingedAtMs = this.#openedAtMs;
    const unfinished = boundUnfinished(raw, {
      room: (bytes, coming) => edge.bodies.room(accountId, bytes, this.#left.signal, coming),
      wait: (until) => void this.#pause(until),
      refused: () => this.#end(1013),
      nowMs: () => edge.clock.steady(),
    });
    ws.on("message", (bytes: Buffer, isBinary) => {
      const taken = unfinished.finished();
      if (!isBinary) return this.#came(bytes, taken);
      taken[Symbol.dispose]();
      this.#end(1003);
    });
    // ws closes by itself where a frame breaks the protocol.
    ws.on("error", () => {});
    ws.once("close", () => {
      unfinished.finished()[Symbol.dispose]();
      this.#left.abort(new CallerLeftError());
      for (const running of this.#running) running.abort(new CallerLeftError());
      this.#chains.close();
      this.#dropWaiting();
    });
  }

  /** Is no request under way? */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting === 0;
  }

  /** Sends a ping where it is due, and ends a socket whose caller is away or that is too old. */
  look(): void {
    const nowMs = this.#options.edge.clock.steady();
    // OpenAI tells the end of the hour before it closes.
    if (nowMs - this.#openedAtMs >= socketLifeMs) this.closeWhenIdle(1001, takesNoMore());
    if (nowMs - this.#pingedAtMs < pingMs) return;
    this.#pingedAtMs = nowMs;
    const { bytesRead } = this.#options.raw;
    // A pong stands behind a message that is still coming, and shows nothing while the connection is not read.
    if (bytesRead > this.#heardBytes || this.#pauses > 0) this.#lostPings = 0;
    this.#heardBytes = bytesRead;
    if (this.#lostPings >= maxLostPings) {
      this.#ws.terminate();
      return;
    }
    // A ping behind bytes that wait says nothing, and to the watch of readers it looks like progress.
    if (this.#ws.bufferedAmount > 0) return;
    this.#lostPings++;
    this.#ws.ping();
  }

  /** Refuses every further request, and stays open. */
  takeNoMore(): void {
    this.#takesMore = false;
  }

  /** Takes no further request, and closes when those under way have ended. Those that wait are refused. */
  closeWhenIdle(code: number, refusal?: RefusalError): void {
    if (this.#closing) return;
    this.#closing = { code, refusal };
    for (const { lane } of this.#dropWaiting()) this.#refuse(takesNoMore(), lane);
    this.#settle();
  }

  /** Ends the requests under way with a refusal. The socket closes behind them. */
  cut(refusal: RefusalError): void {
    for (const running of this.#running) running.abort(refusal);
  }

  #came(bytes: Buffer, taken: TakenRoom): void {
    if (this.#waiting >= maxWaiting) {
      taken[Symbol.dispose]();
      // Refusing one costs more than sending it.
      if (++this.#surplus > maxWaiting) {
        this.#end(1008);
        return;
      }
      const reason = ErrorReason.WEBSOCKET_STREAM_LIMIT_REACHED;
      void this.#pause(this.#refuse(new RefusalError(reason), ""));
      return;
    }
    this.#waiting++;
    this.#reading = this.#reading.then(() => this.#read(bytes, taken));
    void this.#pause(this.#reading);
  }

  /** Reads nothing of the connection until a promise is fulfilled. */
  async #pause(until: Promise<unknown> | undefined): Promise<void> {
    if (!until) return;
    if (this.#pauses++ === 0) this.#ws.pause();
    await until.catch(() => {});
    if (--this.#pauses === 0) this.#ws.resume();
  }

  async #read(bytes: Buffer, taken: TakenRoom): Promise<void> {
    const { edge, principal } = this.#options;
    const { accountId } = principal;
    const { signal } = this.#left;
    const waiting: Waiting = { lane: "", message: {}, room: taken };
    try {
      // The room that it took as it came stays its own. Without it, its bytes would wait outside of all bounds.
      const lacking = bytes.length - taken.bytes;
      if (lacking > 0)
        waiting.room = bothOf(taken, await edge.bodies.room(accountId, lacking, signal));
      const { value } = await edge.reader.read(bytes, {}, { accountId, signal });
      waiting.message = value;
      waiting.lane = this.#laneIn(value);
    } catch (fault) {
      waiting.message = { fault };
    }
    if (signal.aborted) {
      waiting.room[Symbol.dispose]();
      return;
    }
    this.#lanes.add(waiting.lane, waiting);
    this.#advance();
  }

  #laneIn(message: JsonObject): string {
    const lane = laneOf(message);
    if (lane === "" || this.#names.has(lane)) return lane;
    if (this.#names.size >= maxLanes) {
      throw new RefusalError(ErrorReason.INVALID_STREAM_ID, { param: "stream_id" });
    }
    this.#names.add(lane);
    return lane;
  }

  #advance(): void {
    while (this.#running.size < this.#options.inFlight) {
      const next = this.#lanes.begin();
      if (!next) return;
      const { lane, item } = next;
      this.#waiting--;
      const running = new AbortController();
      this.#running.add(running);
      // Between its requests it may be closed for a newcomer, as any connection.
      const ended = noteWork(this.#options.raw);
      void this.#run(item, running.signal).then(() => {
        item.room[Symbol.dispose]();
        this.#surplus = 0;
        this.#running.delete(running);
        ended();
        this.#lanes.end(lane);
        this.#settle();
        this.#advance();
      });
    }
  }

  async #run({ lane, message }: Waiting, signal: AbortSignal): Promise<void> {
    const { edge, events } = this.#options;
    const requestId = edge.ids.make("req");
    const beganAt = performance.now();
    edge.events.requestBegan();
    const told = (error: unknown) => this.#told(error, requestId);
    let refusal: RefusalError | undefined;
    let refused: Promise<void> | undefined;
    try {
      if (this.#closing || !this.#takesMore) throw takesNoMore();
      const ended = await answerCreate(edge, {
        ...{ requestId, message, lane, signal, told },
        authorization: this.authorization,
        conversation: this.#options.conversation,
        chains: this.#chains,
        send: (frame) => this.#send(frame),
      });
      refusal = ended.refusal;
      events.ended(signal.reason instanceof CallerLeftError ? "left" : ended.outcome);
    } catch (error) {
      refusal = told(signal.aborted ? signal.reason : error);
      events.ended(this.#left.signal.aborted ? "left" : "refused");
      refused = this.#refuse(refusal, lane, requestId);
      if (refusal.reason === ErrorReason.INVALID_API_KEY) this.closeWhenIdle(1008);
    }
    edge.events.requestEnded({
      ...{ requestId, method, route },
      status: this.#left.signal.aborted ? 499 : refusal ? errorRow(refusal.reason).status : 200,
      durationMs: Math.round((performance.now() - beganAt) * 100) / 100,
      accountId: this.principal.accountId,
      ...(refusal ? { reason: errorRow(refusal.reason).code } : {}),
    });
    // Refusals would fill the memory for a caller that reads none of them.
    await refused;
  }

  #told(error: unknown, requestId: string): RefusalError {
    if (isRefusal(error)) return error;
    if (!(error instanceof CallerLeftError || this.#left.signal.aborted)) {
      this.#options.edge.events.faulted(error, requestId, route);
    }
    return new RefusalError(ErrorReason.INTERNAL_ERROR);
  }

  #refuse(
    refusal: RefusalError,
    lane: string,
    requestId = this.#options.edge.ids.make("req"),
  ): Promise<void> | undefined {
    return this.#send(errorFrame(refusal, { lane, headers: { "x-request-id": requestId } }));
  }

  /** Sends a frame. A promise where the caller is behind, until it has caught up. */
  #send(frame: string): Promise<void> | undefined {
    const ws = this.#ws;
    if (ws.readyState !== ws.OPEN) return undefined;
    if (ws.bufferedAmount <= maxUnreadBytes) {
      ws.send(frame);
      return undefined;
    }
    return new Promise((resolve) => ws.send(frame, () => resolve()));
  }

  #settle(): void {
    if (!this.#closing || this.#running.size > 0) return;
    const { code, refusal } = this.#closing;
    if (refusal) this.#refuse(refusal, "");
    this.#end(code);
  }

  #end(code: number): void {
    // Messages behind it are refused. Their answers would be charged, and no caller would get them.
    this.#closing ??= { code };
    this.#ws.close(code);
  }

  /** Takes out the messages that wait, and gives back their room. */
  #dropWaiting(): Waiting[] {
    const dropped = this.#lanes.drain();
    for (const { room } of dropped) room[Symbol.dispose]();
    this.#waiting -= dropped.length;
    return dropped;
  }
}

function bothOf(one: Disposable, other: Disposable): Disposable {
  return {
    [Symbol.dispose]() {
      one[Symbol.dispose]();
      other[Symbol.dispose]();
    },
  };
}

function takesNoMore(): RefusalError {
  return new RefusalError(ErrorReason.WEBSOCKET_CONNECTION_LIMIT_REACHED);
}
