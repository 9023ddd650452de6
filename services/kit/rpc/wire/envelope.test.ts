import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Envelope, EnvelopeParser, prefixOf } from "./envelope.ts";

function enveloped(text: string, flags = 0): Buffer {
  return Buffer.concat([prefixOf(flags, text.length), Buffer.from(text)]);
}

function parser(maxBytes = 100) {
  const seen: Envelope[] = [];
  return { seen, parser: new EnvelopeParser(maxBytes, (one) => seen.push(one)) };
}

const texts = (seen: Envelope[]) => seen.map(({ payload }) => Buffer.from(payload).toString());

describe("EnvelopeParser", () => {
  test("cuts several messages out of one chunk, as slices of it", () => {
    const { seen, parser: p } = parser();
    const chunk = Buffer.concat([enveloped("one"), enveloped(""), enveloped("{}", 2)]);
    p.push(chunk);
    expect(texts(seen)).toEqual(["one", "", "{}"]);
    expect(seen.map(({ isEnd }) => isEnd)).toEqual([false, false, true]);
    for (const { payload } of seen) expect(payload.buffer).toBe(chunk.buffer);
    expect(p.isInside).toBe(false);
  });

  test("puts messages together, wherever they were cut", () => {
    const bytes = Buffer.concat([enveloped("first"), enveloped("second"), enveloped("third")]);
    for (let size = 1; size <= bytes.length; size++) {
      const { seen, parser: p } = parser();
      for (let at = 0; at < bytes.length; at += size) p.push(bytes.subarray(at, at + size));
      expect(texts(seen)).toEqual(["first", "second", "third"]);
      expect(p.isInside).toBe(false);
    }
  });

  test("knows that it stands inside a message", () => {
    const { parser: p } = parser();
    p.push(enveloped("whole").subarray(0, 7));
    expect(p.isInside).toBe(true);
  });

  test("refuses a large message by its prefix, and one that is compressed", () => {
    const { parser: p } = parser(10);
    expect(() => p.push(prefixOf(0, 11))).toThrow(
      expect.objectContaining({ code: Code.ResourceExhausted }),
    );
    const { parser: q } = parser(10);
    expect(() => q.push(enveloped("x", 1))).toThrow(
      expect.objectContaining({ code: Code.Internal }),
    );
  });
});
