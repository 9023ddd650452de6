import {
  type Collection,
  type CommandStartedEvent,
  type Db,
  type Document,
  MongoClient,
} from "mongodb";
import { type Clock, systemClock } from "../clock.ts";
import { ErrorReason, isRefusal } from "../errors.ts";
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
 * One MongoDB database, shared by the services of a process. Reads are majority reads of the primary and so never roll
 * back; writes are confirmed by a majority, in the journal. Int64 comes back as bigint, and a bigint is stored as one.
 */
export interface MongoDatabase extends AsyncDisposable {
  /** A collection; its types are what the caller says they are. */
  collection<T extends Document>(name: string): Collection<T>;
  /** Pauses between attempts are its. */
  readonly clock: Clock;
  /** Runs work that may be done twice, again while the server is away. See {@link createAttempt}. */
  attempt: Attempt;
  /** Asks the server, once; rejects where it is away, or, after an attempt was given up, where it takes no writes. */
  ping(): Promise<void>;
  /** Milliseconds since the epoch as the server has it. Refuses with SERVICE_UNAVAILABLE where it is away. */
  serverTime(): Promise<number>;
  /** Runs work that takes as long as it takes (building an index), on a connection of its own. */
  patiently<T>(work: (db: MongoDatabase) => Promise<T>): Promise<T>;
}

/** How to reach a database. */
export interface MongoOptions {
  /** `mongodb://` or `mongodb+srv://`; all that it says of pools, TLS and credentials holds. */
  url: string;
  /** Default: the one that the URL names, which then must name one. */
  name?: string;
  /** Default: the machine's. */
  clock?: Clock;
  /** Is told of each command before it is sent. */
  onCommand?: (event: CommandStartedEvent) => void;
  /** Commands of a trace are spans of it; costs each command a little. */
  isTraced?: boolean;
}

/** The database that a URL names; undefined where it names none. */
export function mongoDatabaseName(url: string): string | undefined {
  const name = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^/?]+)/.exec(url)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** Prepares a connection pool; connects with the first operation. Throws where the URL makes no sense. */
export function openMongo(options: MongoOptions): MongoDatabase {
  return open(options, { isPatient: false });
}

/** A client of the driver, and what bounds its operations. */
interface OwnClient {
  client: MongoClient;
  db: Db;
  settling: Settling;
  isConnected: boolean;
}

/** `isPatient`: operations take as long as they take. */
function open(options: MongoOptions, { isPatient }: { isPatient: boolean }): MongoDatabase {
  const { url, clock = systemClock, onCommand, isTraced = false } = options;
  const name = options.name ?? mongoDatabaseName(url);
  if (name === undefined) throw new Error("the MongoDB URL names no database");
  const make = (): OwnClient => {
    const client = new MongoClient(url, {
      appName: "genmesh",
      connectTimeoutMS: connectTimeoutMs,
      serverSelectionTimeoutMS: serverSelectionTimeoutMs,
      socketTimeoutMS: isPatient ? 0 : socketTimeoutMs,
      waitQueueTimeoutMS: poolWaitMs,
      minHeartbeatFrequencyMS: minHeartbeatMs,
      writeConcern: { w: "majority", journal: true, wtimeoutMS: majorityTimeoutMs },
      readConcern: { level: "majority" },
      readPreference: "primary",
      // The stores make every write safe to repeat and repeat it themselves; the driver's way needs a replica set.
      retryWrites: false,
      retryReads: false,
      useBigInt64: true,
      monitorCommands: onCommand !== undefined || isTraced,
    });
    if (onCommand) client.on("commandStarted", onCommand);
    if (isTraced) traceCommands(client);
    const onLost = () => {
      // The first of those that hung together has made it anew.
      if (isClosed || own.client !== client) return;
      own = make();
      client.close().catch(() => {});
    };
    const settling = { withinMs: operationTimeoutMs, onLost };
    return { client, db: client.db(name), settling, isConnected: false };
  };
  let isClosed = false;
  let own = make();
  const bounded = <T>(work: Promise<T>) => (isPatient ? work : inTime(work, own.settling));
  const attempt = createAttempt(clock);
  // A server whose disk is full, or that may not be written to, answers questions all the same.
  let isInDoubt = false;
  const connected = async (): Promise<void> => {
    const one = own;
    // A driver's client whose first connection failed stays closed for ever, unless it is told to connect anew.
    if (!one.isConnected) await bounded(one.client.connect());
    one.isConnected = true;
  };
  return {
    clock,
    collection<T extends Document>(collection: string) {
      let known = { own, object: own.db.collection<T>(collection) };
      if (isPatient) return known.object;
      return settled(() => {
        if (known.own !== own) known = { own, object: own.db.collection<T>(collection) };
        return { object: known.object, settling: own.settling };
      });
    },
    async attempt(work) {
      try {
        return await attempt(async (unsure) => {
          await connected();
          return await work(unsure);
        });
      } catch (error) {
        isInDoubt ||= isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        throw error;
      }
    },
    async ping() {
      await connected();
      await bounded(own.db.command({ ping: 1 }));
      if (isInDoubt) await bounded(tryToWrite(own.db));
      isInDoubt = false;
    },
    async serverTime() {
      try {
        await connected();
        const { localTime } = await bounded(own.db.command({ hello: 1 }));
        return Number(localTime);
      } catch (error) {
        throw mongoFault(error) === "away" ? awayRefusal(error) : error;
      }
    },
    async patiently(work) {
      await using patient = open(options, { isPatient: true });
      return await work(patient);
    },
    [Symbol.asyncDispose]() {
      isClosed = true;
      return own.client.close();
    },
  };
}

/** Where it is tried whether the server takes writes: one document. */
const trialCollection = "write_trials";

async function tryToWrite(db: Db): Promise<void> {
  const trials = db.collection<{ _id: string; at: Date }>(trialCollection);
  await trials.updateOne({ _id: "last" }, { $set: { at: new Date() } }, { upsert: true });
}
