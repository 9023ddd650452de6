import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPeers } from "#common/agreements/peers.ts";
import type { TextAnswer, TextPort, TextRequest } from "#common/agreements/text-port.ts";
import { createWireText } from "#common/agreements/text-wire.ts";
import { ErrorReason, type Reason, RefusalError, reasonName } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { singlePeer } from "#kit/rpc/wire-pool.ts";
import { createWireTransport } from "#kit/rpc/wire-transport.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { wireWorld } from "../../test/contract/wire.world.ts";
import type { Call } from "./answers/answering.ts";
import { Alone } from "./answers/answering.ts";
import type { Answer } from "./answers/joins.ts";
import { answerPieceBytes } from "./base/limits.ts";
import { UnderWay } from "./base/under-way.ts";
import { createTextPort } from "./port.ts";
import { createTextRoutes, type TextRoutesContext } from "./routes.ts";

// The same service, asked in its process and over a real connection. A caller must not feel the difference.

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
const principal = { accountId: "acct_1", keyId: "key_1" };
const notes = { replayed: false, ignored: ["seed"] };

/** The answer of the service to the test that runs. `stop` aborts when the last caller has left. */
let answer: (call: Call, stop: AbortSignal) => Promise<Answer>;
const roads = {} as Record<"in its process" | "over a wire", TextPort>;
const names = ["in its process", "over a wire"] as const;

beforeAll(async () => {
  const port = createTextPort({
    answering: {
      ask: (call) => new Alone(({ signal }) => answer(call, signal), new UnderWay()),
    },
    reader: createJsonReader(stack.use(createWorkshop())),
  });
  const server = stack.use(
    await wireWorld(
      {
        client: "our client",
        server: "our server",
        serverInterceptors: [accessInterceptor({ mesh: ["mesh-token"] })],
      },
      { text: createTextRoutes({ port, ids: randomIds } as TextRoutesContext) },
    ),
  );
  const { origin } = server;
  const transport = createWireTransport({
    pool: stack.use(singlePeer(origin)),
    baseUrl: origin,
    interceptors: [tokenInterceptor("mesh-token")],
  });
  roads["in its process"] = port;
  roads["over a wire"] = createWireText(createPeers(() => transport).text);
});

interface Bounds {
  signal?: AbortSignal;
  timeoutMs?: number;
}

const request = (body: object, more: Partial<TextRequest> = {}): TextRequest => ({
  operation: Operation.RESPONSES,
  body: Buffer.from(JSON.stringify(body)),
  ...more,
});
const call = ({ signal = new AbortController().signal, ...bounds }: Bounds = {}) => ({
  ...{ principal, requestId: "req_1", signal },
  ...bounds,
});

/** An answer as a caller sees it. */
async function seen(answered: Promise<TextAnswer>): Promise<object> {
  try {
    const { kind, replayed, ignored, ...more } = await answered;
    const told = { kind, replayed, ignored: [...ignored] };
    if ("body" in more) {
      const body = Buffer.from(more.body).toString();
      return { ...told, body, cost: more.cost };
    }
    const stream = "pieces" in more ? more.pieces : more.events;
    let text = "";
    const error = await (async () => {
      for await (const bytes of stream) text += Buffer.from(bytes).toString();
    })().catch(errorOf);
    const pieces = "pieces" in more ? { cost: more.cost, bytes: more.bytes } : {};
    return { ...told, ...pieces, text, error };
  } catch (error) {
    return { error: errorOf(error) };
  }
}

function errorOf(error: unknown): object {
  if (!(error instanceof RefusalError)) return { told: String(error) };
  const { reason, message, param, metadata } = error;
  return { reason: reasonName(reason), message, param, metadata: { ...metadata } };
}

async function* events(error?: Error) {
  yield Buffer.from("data: 1\n\n");
  yield Buffer.from("data: 2\n\n");
  if (error) throw error;
}

const reasons = Object.values(ErrorReason).filter(
  (reason): reason is Reason => typeof reason === "number" && reason !== ErrorReason.UNSPECIFIED,
);
const forms = [
  ["a plain body", {}],
  ["a body that asks for events", { stream: true }],
] as const;

describe("both roads refuse alike", () => {
  test.each(reasons.map((reason) => [reasonName(reason), reason] as const))(
    "%s",
    async (name, reason) => {
      const metadata = { cost: "5", retry_after_ms: "7000" };
      const refusal = new RefusalError(reason, { message: "It is so.", param: "input", metadata });
      const told = { reason: name, message: "It is so.", param: "input", metadata };
      for (const road of names) {
        answer = () => Promise.reject(refusal);
        for (const [, body] of forms) {
          expect(await seen(roads[road].answer(request(body), call())), road).toEqual({
            error: told,
          });
        }
        answer = async () => ({ kind: "events", events: events(refusal), ...notes });
        expect(
          await seen(roads[road].answer(request({ stream: true }), call())),
          road,
        ).toMatchObject({
          text: "data: 1\n\ndata: 2\n\n",
          error: told,
        });
      }
    },
  );

  test.each([
    ["no JSON", { body: Buffer.from("{") }],
    ["an operation that is none", { operation: Operation.UNSPECIFIED }],
  ])("%s", async (_, wrong) => {
    const [here, there] = await Promise.all(
      names.map((road) => seen(roads[road].answer(request({ stream: true }, wrong), call()))),
    );
    expect(here).toMatchObject({ error: { reason: expect.stringMatching(/^INVALID_/) } });
    expect(there).toEqual(here);
  });

  test.each(names)("a stream for a caller who takes JSON alone: %s", async (road) => {
    expect(await seen(roads[road].json(request({ stream: true }), call()))).toMatchObject({
      error: { reason: "INVALID_VALUE", param: "stream" },
    });
  });
});

describe("both roads answer alike", () => {
  const large = Buffer.alloc(2 * answerPieceBytes + 1, "a");
  const json = (body: Buffer) => ({ kind: "json" as const, body, cost: 12n, ...notes });
  const stream = () => ({ kind: "events" as const, events: events(), ...notes });
  const told = { replayed: false, ignored: ["seed"] };

  test.each([
    ["JSON", {}, () => json(Buffer.from("{}")), { kind: "json", body: "{}", cost: 12n, ...told }],
    [
      "JSON where events may come",
      { stream: true },
      () => json(Buffer.from("{}")),
      {
        kind: "json",
        body: "{}",
        cost: 12n,
        ...told,
      },
    ],
    [
      "events",
      { stream: true },
      stream,
      {
        kind: "events",
        text: "data: 1\n\ndata: 2\n\n",
        error: undefined,
        ...told,
      },
    ],
    [
      "a large JSON in pieces",
      { stream: true },
      () => json(large),
      {
        kind: "pieces",
        bytes: large.length,
        text: large.toString(),
        cost: 12n,
        error: undefined,
        ...told,
      },
    ],
  ])("%s", async (_, body, made, expected) => {
    answer = async () => made();
    for (const road of names) {
      const asked = request(body, { takesPieces: true });
      expect(await seen(roads[road].answer(asked, call())), road).toEqual(expected);
    }
  });

  test.each(names)("a large JSON as one where pieces are not taken: %s", async (road) => {
    answer = async () => json(large);
    expect(await seen(roads[road].answer(request({ stream: true }), call()))).toMatchObject({
      kind: "json",
      body: large.toString(),
    });
  });

  test.each(names)("the service learns who asks, under which key and limits: %s", async (road) => {
    let got: Call | undefined;
    answer = async (asked) => {
      got = asked;
      return json(Buffer.from("{}"));
    };
    const admission = { allowedModels: ["chat-1"], monthlyUsdMicrosLimit: 5n };
    await roads[road].answer(request({}, { idempotencyKey: "again", admission }), call());
    expect(got).toMatchObject({ principal, requestId: "req_1", idempotencyKey: "again" });
    expect(got?.admission).toMatchObject({ ...admission, refuseWith: 0, limitReset: 0 });
  });
});

describe.each(names)("%s", (road) => {
  /** A request without an answer, until its service is stopped. */
  function unanswered() {
    const stopped = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    answer = (_, stop) => {
      asked.resolve();
      stop.addEventListener("abort", () => stopped.resolve());
      return new Promise(() => {});
    };
    return { asked: asked.promise, stopped: stopped.promise };
  }

  test.each(forms)(
    "a passed deadline is SERVICE_UNAVAILABLE, and stops the work: %s",
    async (_, body) => {
      const { stopped } = unanswered();
      const late = seen(roads[road].answer(request(body), call({ timeoutMs: 100 })));
      expect(await late).toMatchObject({
        error: { reason: "SERVICE_UNAVAILABLE", metadata: { retry_after_ms: "1000" } },
      });
      await stopped;
    },
  );

  test.each(forms)("a caller that leaves is told so, and stops the work: %s", async (_, body) => {
    const { asked, stopped } = unanswered();
    const caller = new AbortController();
    const left = roads[road].answer(request(body), call({ signal: caller.signal }));
    await asked;
    caller.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    await stopped;
  });

  test("so does one that leaves in the middle of a stream", async () => {
    const stopped = Promise.withResolvers<void>();
    answer = async (_, stop) => {
      stop.addEventListener("abort", () => stopped.resolve());
      const silent = async function* () {
        yield Buffer.from("data: 1\n\n");
        await new Promise(() => {});
      };
      return { kind: "events", events: silent(), ...notes };
    };
    const caller = new AbortController();
    const begun = await roads[road].answer(
      request({ stream: true }),
      call({ signal: caller.signal }),
    );
    if (begun.kind !== "events") throw new Error("no stream");
    const stream = begun.events[Symbol.asyncIterator]();
    expect(await stream.next()).toMatchObject({ done: false });
    const next = stream.next();
    caller.abort(new Error("gone"));
    await expect(next).rejects.toThrow("gone");
    await stopped.promise;
  });
});

test("an unknown error reaches the edge of its own process whole, and another process without its text", async () => {
  answer = () => Promise.reject(new TypeError("a secret"));
  const asked = request({});
  expect(await seen(roads["in its process"].answer(asked, call()))).toEqual({
    error: { told: "TypeError: a secret" },
  });
  const error = await roads["over a wire"].answer(asked, call()).catch(errorOf);
  expect(error).toMatchObject({
    reason: "INTERNAL_ERROR",
    metadata: { incident: expect.any(String) },
  });
  expect(JSON.stringify(error)).not.toContain("secret");
});
