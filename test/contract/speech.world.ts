import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { pino } from "pino";
import { createCatalogView } from "#common/agreements/catalog-client.ts";
import { createHoldClient } from "#common/agreements/hold-client.ts";
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
import { BodyForm, MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
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

/** Speaks: what lies upstream is the test's. */
export type Speak = (task: SpeechTask) => Promise<{ bytes: Uint8Array; durationSeconds: number }>;

/** An MP3, as far as these tests look. */
export const mp3 = Buffer.from("an mp3");

/** What a process of media may do differently. */
export interface ProcessOptions {
  /** Puts something between speech and its stores. */
  wrap?: Mortal["wrap"];
  /** Stands between speech and billing. */
  between?: Interceptor;
  retentionMs?: number;
}

/** What a world of speech may do differently. */
export interface SpeechWorldOptions {
  /** What Alice has; default a dollar. */
  usdMicros?: bigint;
  /** Default: embedded. Billing has stores of its own. */
  openStores?: OpenWorldStores | undefined;
}

/** Real billing and catalog, a database and blobs for speech, and processes of it that come and go. */
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
  let speak: Speak = async () => ({ bytes: mp3, durationSeconds: 1.5 });

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
  // Billing asks whichever process of media there is.
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
      holds: createHoldClient(billing, { clock }),
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
      /** Speaks a body; a short text by default. */
      generate(body: unknown = hello(), more: GenerateOptions = {}) {
        const { principal = alice, key, form = BodyForm.UNSPECIFIED, signal, admission } = more;
        return client.generateSpeech(
          {
            body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
            form,
            ...(admission ? { admission } : {}),
            ...(key === undefined ? {} : { idempotencyKey: key }),
          },
          { headers: callHeaders(principal, "req_test"), ...(signal ? { signal } : {}) },
        );
      },
      /** Lets so much time pass, less than a lease, and waits for the beat of the request that began last. */
      async live(ms: number): Promise<void> {
        clock.jump(ms);
        const { store } = openSpeechStore(opened.database);
        await until("a beat", async () => {
          const record = await store.find(tasks.at(-1)?.requestId ?? "");
          return record?.status !== "open" || record.leaseUntil > clock.now() + leaseMs - ms;
        });
      },
      /** It is dead: nothing of it happens any more. */
      leave,
      /** Closes what a dead process has open. */
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
    /** Billing, as speech has it. */
    billing: peers.billing,
    /** Alice's journal without her grant, oldest first; the ledger is audited first. */
    async journal() {
      for await (const { finding } of admin.billing.auditLedger({})) {
        if (finding.case !== "summary") throw new Error(`the ledger is not right: ${finding.case}`);
      }
      const { accountId } = alice;
      const { entries } = await admin.billing.listEntries({ accountId, pageSize: 1_000 });
      return entries.filter(({ kind }) => kind !== EntryKind.GRANT).reverse();
    },
    /** What upstream does from now on. */
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

/** What a call may bring. */
export interface GenerateOptions {
  principal?: Principal;
  key?: string;
  form?: BodyForm;
  signal?: AbortSignal;
  admission?: MessageInitShape<typeof AdmissionSchema>;
}

export type SpeechWorld = Awaited<ReturnType<typeof createSpeechWorld>>;
export type SpeechProcess = Awaited<ReturnType<SpeechWorld["openProcess"]>>;

/** A request of 12 characters: 180 USD micros by the shipped catalog. */
export function hello(more: Record<string, unknown> = {}) {
  return { model: "speech-1", input: "Hello there.", voice: "alloy", ...more };
}

/** Every open request's lease has run out, as if its process had stood still for so long. */
export async function endLeases(database: Database): Promise<void> {
  if (database.kind === "sqlite") {
    await database.sqlite.write((tx) => tx.run("UPDATE media_speech SET due_at = 0"));
  } else {
    await recordsIn(database).updateMany({}, { $set: { dueAt: 0 } });
  }
}

/** A request's record is gone. */
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

/** Whole keys of a blob store. */
export async function keysOf(blobs: BlobStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of blobs.list()) keys.push(key);
  return keys;
}
