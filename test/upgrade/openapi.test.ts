import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { expect, test } from "vitest";
import { committedDescription } from "../../gateway/openapi.ts";
import { breakingChanges } from "../support/openapi-changes.ts";

const newer = JSON.parse(await committedDescription());

test("a client made from the description of the last release still works", async () => {
  const packed = await readFile(new URL("state/openapi.json.gz", import.meta.url));
  const older = JSON.parse((await promisify(gunzip)(packed)).toString());
  expect(breakingChanges(older, newer)).toEqual([]);
});

// biome-ignore lint/suspicious/noExplicitAny: the description's own shape.
type Change = (description: any) => void;
const job = (description: Parameters<Change>[0]) => description.components.schemas.Job;

test.for<[what: string, change: Change, found: string]>([
  ["an operation is gone", ({ paths }) => delete paths["/models"].get, "GET /models is gone"],
  [
    "an operation has another id",
    ({ paths }) => {
      paths["/models"].get.operationId = "models";
    },
    "GET /models has another operationId",
  ],
  [
    "a field of an answer is gone",
    (description) => delete job(description).properties.progress,
    "POST /images/generations 202.progress is gone",
  ],
  [
    "a field of an answer may be absent",
    (description) => job(description).required.shift(),
    "POST /images/generations 202.id may be absent",
  ],
  [
    "a field of an answer has another type",
    (description) => {
      job(description).properties.progress.type = "string";
    },
    "POST /images/generations 202.progress: integer became string",
  ],
  [
    "a field of a request is required",
    ({ components }) => components.schemas.MessageRequest.required.push("system"),
    "POST /messages.system is required",
  ],
  [
    "a value of a request is not taken",
    ({ components }) => components.schemas.ChatInputMessage.properties.role.enum.shift(),
    "POST /chat/completions.messages[].role: system is not taken any more",
  ],
  [
    "a bound of a request is narrower",
    ({ components }) => {
      components.schemas.MessageRequest.properties.max_tokens.minimum = 2;
    },
    "POST /messages.max_tokens: minimum rose",
  ],
  [
    "an answer is gone",
    ({ paths }) => delete paths["/files"].post.responses[200],
    "POST /files: 200 is gone",
  ],
])("%s: found", ([, change, found]) => {
  const changed = structuredClone(newer);
  change(changed);
  expect(breakingChanges(newer, changed)).toContain(found);
});

test("more operations, fields and optional parameters break nothing", () => {
  const changed = structuredClone(newer);
  job(changed).properties.news = { type: "string" };
  changed.paths["/news"] = { get: changed.paths["/models"].get };
  changed.components.schemas.MessageRequest.properties.news = { type: "string" };
  expect(breakingChanges(newer, changed)).toEqual([]);
});
