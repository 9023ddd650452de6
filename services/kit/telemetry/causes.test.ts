import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { causesOf } from "./causes.ts";

const coded = (code: unknown, cause?: unknown) =>
  Object.assign(new Error("words", { cause }), { code });

test.each<[string, unknown, string | undefined]>([
  ["nothing", undefined, undefined],
  ["no error", "words", undefined],
  ["a code of Node", coded("ECONNREFUSED"), "ECONNREFUSED"],
  ["a code of a driver", coded(11_600), "11600"],
  ["a class", new TypeError("words"), "TypeError"],
  [
    "a peer's error over a socket's",
    new ConnectError(
      "words",
      Code.DeadlineExceeded,
      {},
      [],
      coded("UND_ERR_SOCKET", coded("EPIPE")),
    ),
    "deadline_exceeded < UND_ERR_SOCKET < EPIPE",
  ],
  ["a refusal", new RefusalError(ErrorReason.HOLD_NOT_FOUND), "hold_not_found"],
  ["a code that is words", coded("what a caller said"), "Error"],
  ["a name that is words", Object.assign(new Error(), { name: "what a caller said" }), "Error"],
])("behind an error lies %s", (_, cause, said) => {
  expect(causesOf(new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { cause }))).toBe(said);
});

test("no more than six causes are named", () => {
  let error: unknown;
  for (let i = 0; i < 10; i++) error = coded(`E${i}0`, error);
  expect(causesOf(error as Error)?.split(" < ")).toHaveLength(6);
});
