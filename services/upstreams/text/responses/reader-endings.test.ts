import { describe, expect, test } from "vitest";
import { ErrorReason, errorRow } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import {
  begun,
  expectWhole,
  perfect,
  read,
  usage,
} from "../../../../test/support/responses-streams.ts";
import { UpstreamFailure } from "../failure.ts";

describe("endings", () => {
  const failed = (result: ReturnType<typeof read>, reason: keyof typeof ErrorReason) => {
    const row = errorRow(ErrorReason[reason] as Parameters<typeof errorRow>[0]);
    expectWhole(result);
    expect(result.out.at(-1)?.ending).toBe("failed");
    const { type, response } = result.data.at(-1);
    expect(type).toBe("response.failed");
    expect(response.status).toBe("failed");
    expect(response.error).toEqual({ code: row.code, message: row.message });
  };

  test("incomplete keeps its reason and its open item ends", () => {
    const result = read([
      ...perfect.slice(0, 6),
      {
        type: "response.incomplete",
        response: { ...begun, incomplete_details: { reason: "content_filter" }, usage },
      },
    ]);
    expectWhole(result);
    expect(result.out.at(-1)?.ending).toBe("incomplete");
    const { response } = result.data.at(-1);
    expect(response.incomplete_details).toEqual({ reason: "content_filter" });
    expect(response.output[0].status).toBe("incomplete");
  });

  test("every cut position gives exactly one failed event with what was said", () => {
    for (const end of ["end", "cut", "timeout"] as const) {
      for (let at = 1; at < perfect.length; at++) {
        const result = read(perfect.slice(0, at), { end });
        failed(result, end === "timeout" ? "UPSTREAM_TIMEOUT" : "MODEL_REQUEST_FAILED");
        const text = result.out.map((event) => event.text).join("");
        const shown = result.data.at(-1).response.output[0]?.content?.[0]?.text ?? "";
        expect(shown).toBe(text);
      }
    }
  });

  test("garbage, [DONE] too early, error and failed events end in our words", () => {
    const some = perfect.slice(0, 6);
    failed(read([...some, "data: {not json\n\n"]), "MODEL_REQUEST_FAILED");
    failed(read([...some, "data: [1]\n\n"]), "MODEL_REQUEST_FAILED");
    failed(read([...some, 'data: {"x":1}\n\n']), "MODEL_REQUEST_FAILED");
    failed(read([...some, "data: [DONE]\n\n"]), "MODEL_REQUEST_FAILED");
    const error = { type: "error", code: "server_error", message: "SECRET" };
    failed(read([...some, error]), "MODEL_REQUEST_FAILED");
    failed(read([...some, { ...error, code: "content_filter" }]), "CONTENT_POLICY_VIOLATION");
    const refused = { ...begun, error: { code: "bio_policy", message: "SECRET" }, usage };
    const result = read([...some, { type: "response.failed", response: refused }]);
    failed(result, "CONTENT_POLICY_VIOLATION");
    expect(result.out.at(-1)?.usage?.inputTokens).toBe(3);
  });

  test("usage that comes with the failure after an error event is not lost", () => {
    const result = read([
      ...perfect.slice(0, 6),
      { type: "error", code: "server_error", message: "SECRET" },
      { type: "response.failed", response: { ...begun, error: { code: "x" }, usage } },
    ]);
    failed(result, "MODEL_REQUEST_FAILED");
    expect(result.out.at(-1)?.usage?.outputTokens).toBe(2);
  });

  test("nothing follows the terminal event", () => {
    const result = read([...perfect, ...perfect, "data: [DONE]\n\n"]);
    expectWhole(result);
    expect(result.data).toHaveLength(perfect.length);
  });

  test("a failure before any event is no stream", () => {
    const kindOf = (events: (JsonObject | string)[], end: "end" | "timeout" = "end") => {
      try {
        read(events, { end });
      } catch (error) {
        if (error instanceof UpstreamFailure) return error.kind;
        throw error;
      }
      return "none";
    };
    expect(kindOf([])).toBe("garbage");
    expect(kindOf([], "timeout")).toBe("timeout");
    expect(kindOf(["data: <html>\n\n"])).toBe("garbage");
    expect(kindOf([{ type: "error", code: "x" }])).toBe("garbage");
    expect(kindOf([{ type: "error", code: "content_policy_violation" }])).toBe("policy");
    expect(kindOf([{ type: "response.failed", response: { usage } }])).toBe("none");
  });
});
