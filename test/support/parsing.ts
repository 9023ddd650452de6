import { createJsonReader } from "#kit/json-reader/index.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import type { Parsing } from "../../services/text/request/parse.ts";

/** How a test parses a body: without an idempotency key, for an account that has nothing else to read. */
export function testParsing(): Parsing {
  const { signal } = new AbortController();
  return {
    reader: createJsonReader(createWorkshop()),
    accountId: "acct_1",
    isKeyed: false,
    signal,
  };
}
