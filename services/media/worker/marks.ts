// Signs files that were made with what they say of their origin (C2PA), where the catalog asks for that. `kit/provenance` writes
// the manifests.

import { Readable } from "node:stream";
import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import {
  chainFault,
  createSigner,
  type Mark,
  markedTypes,
  markImage,
  markMp4,
  SignerKeyError,
  type Unmarked,
} from "#kit/provenance/index.ts";
import { type NamelessFile, openNamelessFile } from "#kit/store/nameless-file.ts";
import type { Clock } from "#kit/time/clock.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { JobEvents } from "../events.ts";
import { type Job, upstreamOf } from "../jobs/job.ts";
import { maxMarkedBytes } from "../limits.ts";

/** The parts of the host that marking needs. */
export interface Marking {
  /** The private key in PEM, by a catalog's name for it: a variable, or the absolute path of a file. */
  key: (name: string) => string | undefined | Promise<string | undefined>;
  /** An existing folder for videos while their hash is made. */
  tempFolder: string;
  /** Of this program. */
  version: string;
}

/** Bytes to be stored: in memory, or as they come. */
type Bytes = readonly Uint8Array[] | Readable;

/** Adds what made files say of their origin. */
export interface Marks {
  /**
   * The bytes with a manifest, where the catalog asks for one and they have none. Otherwise, and where signing fails, the bytes as they
   * came, because they were paid for. Rejects only with the source's own error.
   */
  mark(source: Readable | Uint8Array, mimeType: string, job: Job): Promise<Bytes>;
}

/** Why a file that should get a manifest got none. */
export type MarkFault = "key_missing" | "key" | "certificate" | "size" | "disk" | "signing";

/** The parts that marking needs. */
interface MarksContext {
  clock: Clock;
  catalog: Pick<LiveCatalog, "current">;
  events: Pick<JobEvents, "marked" | "markFailed">;
  /** Undefined: files stay as they came. */
  marking: Marking | undefined;
}

/** A file cannot be signed now. */
class MarkError extends Error {
  override readonly name = "MarkError";
  readonly fault: MarkFault;
  constructor(fault: MarkFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** Makes the marks of a worker's files. */
export function createMarks({ clock, catalog, events, marking }: MarksContext): Marks {
  /** The mark for a file of now. Undefined: the catalog asks for none. Throws a {@link MarkError}. */
  const markFor = async (job: Job): Promise<Mark | undefined> => {
    const { contentCredentials } = catalog.current().snapshot;
    if (!contentCredentials || !marking) return undefined;
    const { certificate, keyName } = contentCredentials;
    const madeAtMs = clock.now();
    const fault = chainFault(certificate, madeAtMs);
    if (fault !== undefined) throw new MarkError("certificate", `the certificate ${fault}`);
    const key = await marking.key(keyName);
    if (!key) throw new MarkError("key_missing", "the certificate's key is not there");
    const signer = createSigner(certificate, key);
    const isOwn = upstreamOf(job).protocol === UpstreamProtocol.BUILTIN;
    const generator = { name: "genmesh", version: marking.version };
    return { generator, madeAtMs, signer, source: isOwn ? "algorithm" : "trained_model" };
  };
  /** Undefined where the bytes stay as they came. */
  const orFailed = async <T>(job: Job, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      events.markFailed(job, faultOf(error), error);
      return undefined;
    }
  };
  const done = <T extends object>(job: Job, made: T | Unmarked | undefined): T | undefined => {
    if (made === undefined) return undefined;
    if (typeof made === "string") {
      events.marked(job, made);
      return undefined;
    }
    events.marked(job, "signed");
    return made;
  };

  async function* markStream(
    source: Readable,
    folder: string,
    mark: Mark,
    job: Job,
  ): AsyncGenerator<Uint8Array, void> {
    await using spooling = new AsyncDisposableStack();
    const opened = await orFailed(job, () => openNamelessFile(folder).catch(ofDisk));
    let file = opened && spooling.use(opened);
    let sizeBytes = 0;
    for await (const chunk of source as AsyncIterable<Uint8Array>) {
      sizeBytes += chunk.length;
      const kept: NamelessFile | undefined = file;
      if (kept) {
        file = await orFailed(job, async () => {
          if (sizeBytes > maxMarkedBytes) throw new MarkError("size", "the file is too large");
          await kept.append(chunk).catch(ofDisk);
          return kept;
        });
        if (file) continue;
        yield* kept.stream();
      }
      yield chunk;
    }
    if (!file) return;
    const whole = file;
    const marked = done(job, await orFailed(job, () => markMp4(() => whole.stream(), mark)));
    yield* marked ?? whole.stream();
  }

  return {
    async mark(source, mimeType, job) {
      const plain = source instanceof Uint8Array ? [source] : source;
      if (!marking || !markedTypes.includes(mimeType)) return plain;
      const mark = await orFailed(job, () => markFor(job));
      if (!mark) return plain;
      if (!(source instanceof Uint8Array)) {
        const { tempFolder } = marking;
        return Readable.from(markStream(source, tempFolder, mark, job), { objectMode: false });
      }
      const bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
      return done(job, await orFailed(job, () => markImage(bytes, mimeType, mark))) ?? plain;
    },
  };
}

function ofDisk(cause: unknown): never {
  throw new MarkError("disk", "the disk takes no file for a hash", { cause });
}

function faultOf(error: unknown): MarkFault {
  if (error instanceof MarkError) return error.fault;
  return error instanceof SignerKeyError ? "key" : "signing";
}
