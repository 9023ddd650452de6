import type { JsonObject } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { dataFrame, typedFrame } from "../../services/upstreams/text/frame.ts";
import type {
  AnswerEvent,
  Ending,
  JsonAnswer,
  ReportedUsage,
  StreamAnswer,
  TextUpstreams,
  UpstreamRequest,
} from "../../services/upstreams/text/port.ts";

/** The behaviour of a test's upstream for a request. */
export type Script = (request: UpstreamRequest) => Promise<JsonAnswer | StreamAnswer>;

/** Upstreams that a test scripts, in place of real ones. */
export interface ScriptedUpstreams extends TextUpstreams {
  /** The sent requests, in order. */
  sent: UpstreamRequest[];
  script: Script;
}

export function scriptedUpstreams(script: Script): ScriptedUpstreams {
  const upstreams: ScriptedUpstreams = {
    sent: [],
    script,
    async send(request) {
      request.onSent?.();
      upstreams.sent.push(request);
      return upstreams.script(request);
    },
  };
  return upstreams;
}

export interface AnswerOptions {
  text?: string;
  usage?: ReportedUsage | undefined;
  ending?: Ending;
  opaque?: string[];
  id?: string;
}

export const someUsage: ReportedUsage = {
  inputTokens: 20,
  cachedInputTokens: 10,
  outputTokens: 30,
};

/** A Responses object. */
export function responseObject(text: string, options: AnswerOptions = {}): JsonObject {
  return {
    id: options.id ?? "resp_1",
    object: "response",
    created_at: 1,
    status: options.ending ?? "completed",
    model: "chat-1",
    output: [
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
      },
    ],
    usage: options.usage ? { input_tokens: options.usage.inputTokens } : null,
  };
}

/** A complete answer. */
export function jsonAnswer(options: AnswerOptions = {}): JsonAnswer {
  const text = options.text ?? "Hello there.";
  return {
    kind: "json",
    body: Buffer.from(JSON.stringify(responseObject(text, options))),
    ending: options.ending ?? "completed",
    usage: "usage" in options ? options.usage : someUsage,
    outputText: text,
    opaque: options.opaque ?? [],
    upstream: "up",
  };
}

/** The events of a Responses stream: its beginning, deltas, its end. */
export const events = {
  begin: (): AnswerEvent => frame(0, { type: "response.created", response: responseObject("") }),
  delta: (text: string, sequence = 1): AnswerEvent => ({
    ...frame(sequence, { type: "response.output_text.delta", delta: text }),
    text,
  }),
  end(options: AnswerOptions = {}, sequence = 2): AnswerEvent {
    const ending = options.ending ?? "completed";
    const response = responseObject(options.text ?? "Hello there.", options);
    const usage = "usage" in options ? options.usage : someUsage;
    return {
      ...frame(sequence, { type: `response.${ending}`, response }),
      ending,
      ...(usage ? { usage } : {}),
      ...(options.opaque ? { opaque: options.opaque } : {}),
    };
  },
};

function frame(sequence: number, event: JsonObject): AnswerEvent {
  return { frame: typedFrame({ ...event, sequence_number: sequence }), text: "" };
}

/** A chat chunk. */
export function chunk(fields: JsonObject, text = ""): AnswerEvent {
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "chat-1" };
  return { frame: dataFrame({ ...head, ...fields }), text };
}

/** A stream that a test feeds by hand. It ends with its signal's reason, by the rule of the port. */
export interface Feed {
  answer: StreamAnswer;
  push(...batch: AnswerEvent[]): void;
  end(): void;
  break(error: Error): void;
  /** Resolves when a reader waits for the next batch and there is none. */
  drained(): Promise<void>;
  readonly pulls: number;
  /** Has the request's signal aborted? */
  readonly isAborted: boolean;
}

export function feed(signal: StopSignal): Feed {
  const queue: (readonly AnswerEvent[] | Error | "end")[] = [];
  let wake = Promise.withResolvers<void>();
  let idle = Promise.withResolvers<void>();
  let pulls = 0;
  const put = (one: readonly AnswerEvent[] | Error | "end") => {
    queue.push(one);
    idle = Promise.withResolvers<void>();
    wake.resolve();
  };
  signal.addEventListener("abort", () => wake.resolve(), { once: true });
  async function* batches(): AsyncIterable<readonly AnswerEvent[]> {
    for (;;) {
      pulls++;
      while (queue.length === 0) {
        signal.throwIfAborted();
        wake = Promise.withResolvers<void>();
        idle.resolve();
        await wake.promise;
      }
      const one = queue.shift();
      if (one === "end" || one === undefined) return;
      if (one instanceof Error) throw one;
      yield one;
    }
  }
  return {
    answer: { kind: "stream", batches: batches(), upstream: "up" },
    push: (...batch) => put(batch),
    end: () => put("end"),
    break: (error) => put(error),
    drained: () => idle.promise,
    get pulls() {
      return pulls;
    },
    get isAborted() {
      return signal.aborted;
    },
  };
}
