import { createJsonReader } from "#kit/json-reader/index.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import type { Parsing } from "../../services/text/request/parse.ts";

/** Settings for a test that parses a body: without an idempotency key, for an account without other bodies. */
export function testParsing(): Parsing {
  const { signal } = new AbortController();
  return {
    reader: createJsonReader(createWorkshop()),
    accountId: "acct_1",
    isKeyed: false,
    signal,
  };
}
