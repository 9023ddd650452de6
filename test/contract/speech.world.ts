import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { pino } from "pino";
import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { holdClientOf } from "#common/agreements/hold-wire.ts";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { leaseMs } from "#common/paid-work/limits.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import type { RpcService, Service } from "#kit/rpc/service.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createLeaseTime } from "#kit/time/lease-time.ts";
import { EntryKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { AdmissionSchema } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  BodyForm,
  MediaService,
  type StreamSpeechResponse,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { createBilling } from "../../services/billing/index.ts";
import { createCatalog } from "../../services/catalog/index.ts";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import { createSpeech, type Speech } from "../../services/media/speech/index.ts";
import type { SpeechTask } from "../../services/upstreams/media/port.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { type OpenWorldStores, openEmbeddedStores } from "../support/world-stores.ts";
import type { Mortal } from "./files.mortal.ts";

export const alice: Principal = { accountId: "acct_alice", keyId: "key_alice" };
export const alicesOther: Principal = { accountId: "acct_alice", keyId: "key_alice2" };

const tokens = { mesh: ["mesh-token"], admin: "admin-token" };
const silent = pino({ level: "silent" });

/** Makes a speech. The test plays the upstream. */
export type Speak = (task: SpeechTask) => Promise<{ bytes: Uint8Array; durationSeconds: number }>;

/** Looks like an MP3 to these tests. */
export const mp3 = Buffer.from("an mp3");

/** Options of a process of media. */
export interface ProcessOptions {
  /** Puts something between speech and its stores. */
  wrap?: Mortal["wrap"];
  /** Stands between speech and billing. */
  between?: Interceptor;
  retentionMs?: number;
}

/** Options of a world of speech. */
export interface SpeechWorldOptions {
  /** Alice's balance. Default: a dollar. */
  usdMicros?: bigint;
  /** Default: embedded. Billing has stores of its own. */
  openStores?: OpenWorldStores | undefined;
}

/** Real billing and catalog, a database and blobs for speech, and processes of speech that start and end. */
export async function createSpeechWorld(options: SpeechWorldOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-speech-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const clock = jumpClock();
  const openStores = async (name: string) => {
    const own = join(folder, name);
    await mkdir(own, { recursive: true });
    return (options.openStores ?? openEmbeddedStores)(own, clock);
  };
  const others: RpcService[] = [];
  const processes: { speech: Speech; rpc: RpcService }[] = [];
  const tasks: SpeechTask[] = [];
  let speak: Speak = async ({ hear }) => {
    for (const part of [mp3.subarray(0, 2), mp3.subarray(2)]) hear?.(part);
    return { bytes: mp3, durationSeconds: 1.5 };
  };

  const peersWith = (token: string, services: () => RpcService[], between: Interceptor[] = []) =>
    createPeers(() =>
      createDirectTransport({
        services,
        clientInterceptors: [tokenInterceptor(token), ...between],
        serverInterceptors: [
          serverErrorInterceptor({ log: silent, ids: randomIds }),
          accessInterceptor(tokens),
        ],
      }),
    );
  // Billing asks the newest process of media.
  const asking: Peers["media"]["resolveHold"] = async ({ holdId = "", accountId = "" }) => {
    const verdict = await processes.at(-1)?.speech.resolveHold(holdId, accountId);
    if (!verdict) throw new Error("no replica of media is there");
    return { $typeName: "genmesh.media.v1.ResolveHoldResponse", verdict };
  };
  const peers = peersWith("mesh-token", () => others);
  const common = { clock, ids: randomIds, log: silent };
  const started = async (service: Service) => {
    stack.use(service);
    others.push(...service.rpc);
    await service.start();
  };
  const file = join(import.meta.dirname, "../../deploy/catalog.yaml");
  const workshop = stack.use(createWorkshop());
  await started(createCatalog({ ...common, workshop, metrics: createMetrics(), file }));
  const ledger = stack.use(await openStores("billing"));
  await started(
    createBilling({
      ...common,
      metrics: createMetrics(),
      database: ledger.database,
      peers: { ...peers, media: { ...peers.media, resolveHold: asking } },
    }),
  );
  const catalog = stack.use(createCatalogView({ ...common, catalog: peers.catalog }));
  await catalog.ready();
  const admin = peersWith("admin-token", () => others);
  const unit = Unit.USD_MICROS;
  const grant = { accountId: alice.accountId, unit, amount: options.usdMicros ?? 1_000_000n };
  await admin.billing.grant({ ...grant, operationId: "opening" });

  const openProcess = async ({ wrap, between, retentionMs }: ProcessOptions = {}) => {
    const opened = await openStores("media");
    // A process that is not started makes no collections.
    await openSpeechStore(opened.database).prepare();
    const { database, blobs } = wrap?.(opened) ?? opened;
    const { billing } = peersWith("mesh-token", () => others, between ? [between] : []);
    const speech = createSpeech({
      ...common,
      metrics: createMetrics(),
      database,
      blobs,
      catalog,
      holds: holdClientOf({ peers: { billing }, clock }),
      upstreams: {
        async speak(task) {
          tasks.push(task);
          return speak(task);
        },
      },
      retentionMs,
      leaseTime: createLeaseTime(clock, leaseMs),
      reader: createJsonReader(workshop),
    });
    const rpc = { desc: MediaService, impl: speech.methods };
    const own = { speech, rpc };
    processes.push(own);
    const client = peersWith("mesh-token", () => [rpc]).media;
    const leave = () => {
      if (processes.includes(own)) processes.splice(processes.indexOf(own), 1);
    };
    return {
      speech,
      blobs: opened.blobs,
      database: opened.database,
      /** Generates speech from a body. By default a short text. */
      generate(body: unknown = hello(), more: GenerateOptions = {}) {
        return client.generateSpeech(askedOf(body, more), optionsOf(more));
      },
      /** The same, as OpenAI's call. Hears the audio while it is spoken, and resolves with all parts. */
      async hear(body: unknown = hello(), more: GenerateOptions = {}) {
        const speech = askedOf(body, { form: BodyForm.OPENAI, ...more });
        const parts: StreamSpeechResponse["part"][] = [];
        for await (const { part } of client.streamSpeech({ speech }, optionsOf(more))) {
          parts.push(part);
        }
        return parts;
      },
      /** Moves the clock by less than a lease, and waits for the heartbeat of the request that began last. */
      async live(ms: number): Promise<void> {
        clock.jump(ms);
        const { store } = openSpeechStore(opened.database);
        await until("a beat", async () => {
          const record = await store.find(tasks.at(-1)?.requestId ?? "");
          return record?.status !== "open" || record.leaseUntil > clock.now() + leaseMs - ms;
        });
      },
      /** Lets the process die. Nothing of it happens any further. */
      leave,
      /** Closes the open stores of a dead process. */
      closeStores: () => opened[Symbol.asyncDispose](),
      async [Symbol.asyncDispose]() {
        await speech[Symbol.asyncDispose]();
        leave();
        await opened[Symbol.asyncDispose]();
      },
    };
  };
  const owned = stack.move();
  return {
    clock,
    tasks,
    openProcess,
    /** Speech's client of billing. */
    billing: peers.billing,
    /** Alice's journal without her grant, oldest first. The ledger is audited before. */
    async journal() {
      for await (const { finding } of admin.billing.auditLedger({})) {
        if (finding.case !== "summary") throw new Error(`the ledger is not right: ${finding.case}`);
      }
      const { accountId } = alice;
      const { entries } = await admin.billing.listEntries({ accountId, pageSize: 1_000 });
      return entries.filter(({ kind }) => kind !== EntryKind.GRANT).reverse();
    },
    /** Sets the upstream's behaviour from now on. */
    speaks(next: Speak) {
      speak = next;
    },
    async money(accountId = alice.accountId) {
      const { usdMicros } = await peers.billing.getBalance({ accountId });
      const { reserved = 0n, spent = 0n, spendable = 0n } = usdMicros ?? {};
      return { reserved, spent, spendable };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Options of a call. */
export interface GenerateOptions {
  principal?: Principal;
  key?: string;
  form?: BodyForm;
  signal?: AbortSignal;
  admission?: MessageInitShape<typeof AdmissionSchema>;
}

function askedOf(body: unknown, { key, form, admission }: GenerateOptions) {
  return {
    body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
    form: form ?? BodyForm.UNSPECIFIED,
    ...(admission ? { admission } : {}),
    ...(key === undefined ? {} : { idempotencyKey: key }),
  };
}

function optionsOf({ principal = alice, signal }: GenerateOptions) {
  return { headers: callHeaders(principal, "req_test"), ...(signal ? { signal } : {}) };
}

export type SpeechWorld = Awaited<ReturnType<typeof createSpeechWorld>>;
export type SpeechProcess = Awaited<ReturnType<SpeechWorld["openProcess"]>>;

/** A request of 12 characters: 180 USD micros by the shipped catalog. */
export function hello(more: Record<string, unknown> = {}) {
  return { model: "speech-1", input: "Hello there.", voice: "alloy", ...more };
}

/** Ends the lease of every open request, like a long pause of its process. */
export async function endLeases(database: Database): Promise<void> {
  if (database.kind === "sqlite") {
    await database.sqlite.write((tx) => tx.run("UPDATE media_speech SET due_at = 0"));
  } else {
    await recordsIn(database).updateMany({}, { $set: { dueAt: 0 } });
  }
}

/** Removes a request's record. */
export async function loseRecord(database: Database, speechId: string): Promise<void> {
  if (database.kind === "sqlite") {
    const sql = "DELETE FROM media_speech WHERE speech_id = ?";
    await database.sqlite.write((tx) => tx.run(sql, speechId));
  } else {
    await recordsIn(database).deleteOne({ _id: speechId });
  }
}

function recordsIn({ mongo }: Extract<Database, { kind: "mongodb" }>) {
  return mongo.collection<{ _id: string; dueAt: number }>("media_speech");
}

/** All keys of a blob store. */
export async function keysOf(blobs: BlobStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of blobs.list()) keys.push(key);
  return keys;
}
