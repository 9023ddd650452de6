// The form in which a catalog declares the HTTP of an upstream: requests, states, the meanings of answers. The other files of
// this room follow such a declaration.

import { z } from "zod";
import { parseOutputPath } from "#kit/template/output-path.ts";

/** Characters of a path, a pattern or a URL in a declaration. */
const maxText = 2_000;
/** Entries of a list or a table in a declaration. Upstreams document some 20 states and codes. */
const maxEntries = 100;
/** Milliseconds between two looks at a task. Upstreams refuse more frequent looks, and callers would wait for rarer ones. */
const everyMs = { least: 500, most: 60_000 };
/** Longest life of a signed token, in seconds. */
const maxTokenSeconds = 3_600;

const text = z.string().min(1).max(maxText);
const name = z
  .string()
  .max(40)
  .regex(/^[a-z][A-Za-z]*$/, "must be a name of letters");
const place = z
  .string()
  .max(maxText)
  .refine((path) => parseOutputPath(path) !== undefined, "must be a path like data.task_id");
const headerName = z
  .string()
  .max(100)
  .regex(/^[A-Za-z][A-Za-z0-9-]*$/, "must be a header's name");
const few = (map: object) => Object.keys(map).length <= maxEntries;
const tooMany = `has at most ${maxEntries} entries`;

/** The part of a header's value that is another UUID in each request. */
export const freshUuid = "${uuid}";
const headers = z.record(headerName, text).refine(few, tooMany).optional();
/** Names for what is taken of an answer, each with its place there. */
const take = z.record(name, place).refine(few, tooMany).optional();
const body = z.record(z.string(), z.json()).optional();
const methods = {
  get: text.optional(),
  post: text.optional(),
  put: text.optional(),
  delete: text.optional(),
};
const gives = z.literal("file").optional();

const pattern = z.union([text, z.number(), z.boolean(), z.null()]);
/** Patterns by the place in an answer where they are looked for. */
const marks = z
  .record(place, z.array(pattern).min(1).max(maxEntries))
  .refine(few, tooMany)
  .optional();
const stateName = z.string().min(1).max(100);

/** The meanings of an answer beside its state. Where patterns of several fit, the first of these counts. */
export const meanings = ["refused", "empty", "busy", "denied", "unsure", "failed"] as const;

/** The HTTP of an upstream's jobs, as the key `jobs` of an upstream declares it. */
export const declarationSchema = z.strictObject({
  /** The way in which the key is sent. Absent: as `Authorization: Bearer`. */
  auth: z
    .union([
      z.literal("none"),
      z.strictObject({ header: headerName }),
      z.strictObject({ scheme: text }),
      z.strictObject({
        jwt: z.literal("HS256"),
        issuerEnv: z
          .string()
          .max(100)
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable, not a key"),
        seconds: z.int().min(120).max(maxTokenSeconds),
      }),
    ])
    .optional(),
  /** Headers of every request that may have the key. `${uuid}` in a value is another UUID in each request. */
  headers,
  /** The request that begins a task. It sends the filled `input` of the model's call. */
  create: z.strictObject({
    ...methods,
    headers,
    take,
    /** The header that carries the job's id as an idempotency key. */
    key: headerName.optional(),
    gives,
  }),
  /** The look at a task. Absent: the answer to `create` is the result. */
  poll: z
    .strictObject({
      ...methods,
      headers,
      body,
      state: place,
      progress: place.optional(),
      /** The number at which `progress` ends. Default: 100. */
      progressOf: z.number().positive().max(1_000).default(100),
      /** Default: 1 s at first, growing to 5 s. */
      everyMs: z.int().min(everyMs.least).max(everyMs.most).optional(),
      take,
    })
    .optional(),
  /** The meaning of each state. A task in another state counts as running. */
  states: z
    .record(stateName, z.enum(["running", "done", "failed", "refused"]))
    .refine(few, tooMany)
    .optional(),
  /** The request for the output, once a task is done. */
  result: z.strictObject({ ...methods, headers, body, gives }).optional(),
  answers: z
    .strictObject({
      refused: marks,
      empty: marks,
      busy: marks,
      denied: marks,
      unsure: marks,
      failed: marks,
    })
    .default({}),
  cancel: z
    .strictObject({
      ...methods,
      headers,
      body,
      /** The states in which it is sent. They are looked at first. */
      when: z.array(stateName).min(1).max(maxEntries).optional(),
      /** The answer of a success. */
      says: marks,
    })
    .optional(),
  /** Further origins that get the key. */
  origins: z.array(text).max(maxEntries).default([]),
  /** Files of the origin of `baseUrl`, and of `origins`, get the key. */
  download: z.literal("key").optional(),
  /** A question that costs nothing, for `genmesh catalog check --online`. */
  check: z.strictObject({ get: text, models: place.optional() }).optional(),
  /** The URL of a description to which each `input` is compared, by `genmesh catalog check --online`. */
  openapi: text.optional(),
});

/** An upstream's declaration, with its defaults filled in. */
export type Declaration = z.output<typeof declarationSchema>;
/** Patterns by their place in an answer. */
export type Marks = NonNullable<z.output<typeof marks>>;
/** A value at a place, as a declaration tells of it. */
export type Pattern = z.output<typeof pattern>;
/** The meaning of an answer, beside its state. */
export type Meaning = (typeof meanings)[number];
/** A request that a declaration describes. */
export type Step = { [K in keyof typeof methods]?: string | undefined } & {
  headers?: Readonly<Record<string, string>> | undefined;
};
