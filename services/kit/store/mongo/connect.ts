// Opens the MongoDB database of a process. All stores in MongoDB work through it, with its bounds of time and its repeats.

import {
  type Collection,
  type CommandStartedEvent,
  type Db,
  type Document,
  MongoClient,
} from "mongodb";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { type Attempt, createAttempt } from "./attempts.ts";
import { awayRefusal, mongoFault } from "./errors.ts";
import {
  connectTimeoutMs,
  majorityTimeoutMs,
  minHeartbeatMs,
  operationTimeoutMs,
  poolWaitMs,
  serverSelectionTimeoutMs,
  socketTimeoutMs,
} from "./limits.ts";
import { inTime, type Settling, settled } from "./settled.ts";
import { traceCommands } from "./spans.ts";

/**
 * One MongoDB database, shared by the services of a process. Reads are majority reads of the primary and so never roll back. Writes are
 * confirmed by a majority, in the journal. Int64 comes back as bigint, and a bigint is stored as Int64.
 */
export interface MongoDatabase extends AsyncDisposable {
  /** A collection. The caller declares its types, and they are not checked. */
  collection<T extends Document>(name: string): Collection<T>;
  /** Times the pauses between attempts. */
  readonly clock: Clock;
  /** Runs work that may be done twice, and repeats it while the server is away. See {@link createAttempt}. */
  attempt: Attempt;
  /** Sends the server one question. Rejects where it is away. After an attempt was given up, rejects where it takes no writes. */
  ping(): Promise<void>;
  /** Milliseconds since the epoch by the server's clock. Refuses with SERVICE_UNAVAILABLE where the server is away. */
  serverTime(): Promise<number>;
  /** Runs work that may take any time (building an index), on a connection of its own. */
  patiently<T>(work: (db: MongoDatabase) => Promise<T>): Promise<T>;
}

/** Options for reaching a database. */
export interface MongoOptions {
  /** `mongodb://` or `mongodb+srv://`. Its settings of pools, TLS and credentials apply. */
  url: string;
  /** Default: the name in the URL, which then must have one. */
  name?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Called with each command before it is sent. */
  onCommand?: (event: CommandStartedEvent) => void;
  /** Makes spans of commands within a trace, which costs each command a little. */
  isTraced?: boolean;
}

/** The database that a URL names. Undefined where it names none. */
export function mongoDatabaseName(url: string): string | undefined {
  const name = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^/?]+)/.exec(url)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** Prepares a connection pool. Connects with the first operation. Throws where the URL makes no sense. */
export function openMongo(options: MongoOptions): MongoDatabase {
  return open(options, { isPatient: false });
}

/** A client of the driver, with the bounds of its operations. */
interface OwnClient {
  client: MongoClient;
  db: Db;
  settling: Settling;
  isConnected: boolean;
}

/** `isPatient`: operations may take any time. */
function open(options: MongoOptions, { isPatient }: { isPatient: boolean }): MongoDatabase {
  const { clock = systemClock } = options;
  const server = new ServerClient(options, isPatient);
  const attempt = createAttempt(clock);
  // A server with a full disk, or one that refuses writes, still answers questions.
  let isInDoubt = false;
  return {
    clock,
    collection: (name) => server.collection(name),
    async attempt(work) {
      try {
        return await attempt(async (unsure) => {
          await server.connect();
          return await work(unsure);
        });
      } catch (error) {
        isInDoubt ||= isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        throw error;
      }
    },
    async ping() {
      await server.connect();
      await server.within((db) => db.command({ ping: 1 }));
      if (isInDoubt) await server.within(tryToWrite);
      isInDoubt = false;
    },
    async serverTime() {
      try {
        await server.connect();
        const { localTime } = await server.within((db) => db.command({ hello: 1 }));
        return Number(localTime);
      } catch (error) {
        throw mongoFault(error) === "away" ? awayRefusal(error) : error;
      }
    },
    async patiently(work) {
      await using patient = open(options, { isPatient: true });
      return await work(patient);
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** The driver's client of one database. Another one replaces it where operations get no answer in time. */
class ServerClient {
  readonly #options: MongoOptions;
  readonly #name: string;
  readonly #isPatient: boolean;
  #own: OwnClient;
  #isClosed = false;

  constructor(options: MongoOptions, isPatient: boolean) {
    const name = options.name ?? mongoDatabaseName(options.url);
    if (name === undefined) throw new Error("the MongoDB URL names no database");
    this.#options = options;
    this.#name = name;
    this.#isPatient = isPatient;
    this.#own = this.#make();
  }

  async connect(): Promise<void> {
    const one = this.#own;
    // A driver's client whose first connection failed stays closed for ever, unless it is asked to connect again.
    if (!one.isConnected) await this.within(() => one.client.connect());
    one.isConnected = true;
  }

  /** Runs `work`. It is given up after the time of an operation, unless the client is patient. */
  within<T>(work: (db: Db) => Promise<T>): Promise<T> {
    const { db, settling } = this.#own;
    return this.#isPatient ? work(db) : inTime(work(db), settling);
  }

  collection<T extends Document>(name: string): Collection<T> {
    let known = { own: this.#own, object: this.#own.db.collection<T>(name) };
    if (this.#isPatient) return known.object;
    return settled(() => {
      const own = this.#own;
      if (known.own !== own) known = { own, object: own.db.collection<T>(name) };
      return { object: known.object, settling: own.settling };
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#own.client.close();
  }

  #make(): OwnClient {
    const { url, onCommand, isTraced = false } = this.#options;
    const client = new MongoClient(url, {
      appName: "genmesh",
      connectTimeoutMS: connectTimeoutMs,
      serverSelectionTimeoutMS: serverSelectionTimeoutMs,
      socketTimeoutMS: this.#isPatient ? 0 : socketTimeoutMs,
      waitQueueTimeoutMS: poolWaitMs,
      minHeartbeatFrequencyMS: minHeartbeatMs,
      writeConcern: { w: "majority", journal: true, wtimeoutMS: majorityTimeoutMs },
      readConcern: { level: "majority" },
      readPreference: "primary",
      // The stores make every write safe to repeat and repeat it themselves. The driver's repeats need a replica set.
      retryWrites: false,
      retryReads: false,
      useBigInt64: true,
      monitorCommands: onCommand !== undefined || isTraced,
    });
    if (onCommand) client.on("commandStarted", onCommand);
    if (isTraced) traceCommands(client);
    const onLost = () => {
      // The first of the operations that got no answer has replaced the client already.
      if (this.#isClosed || this.#own.client !== client) return;
      this.#own = this.#make();
      client.close().catch(() => {});
    };
    const settling = { withinMs: operationTimeoutMs, onLost };
    return { client, db: client.db(this.#name), settling, isConnected: false };
  }
}

/** The collection with one document that tests whether the server takes writes. */
const trialCollection = "write_trials";

async function tryToWrite(db: Db): Promise<void> {
  const trials = db.collection<{ _id: string; at: Date }>(trialCollection);
  await trials.updateOne({ _id: "last" }, { $set: { at: new Date() } }, { upsert: true });
}
