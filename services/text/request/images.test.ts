import { describe, expect, test } from "vitest";
import {
  ask,
  big,
  image,
  message,
  mib,
  png,
  prepare,
  refusalOf,
} from "../../../test/contract/usage.prepare.ts";
import { usualTokensAtLeast } from "../tokens/patches.ts";

describe("images of /responses", () => {
  const at = "input[0].content[0]";
  const cases: [string, object, string][] = [
    [
      "model without images",
      { ...image({ image_url: png }), model: "text-only" },
      `unsupported_content_type ${at}.type`,
    ],
    ["no source", image({}), `missing_required_parameter ${at}.image_url`],
    ["two sources", image({ image_url: png, file_id: "f" }), `invalid_value ${at}.file_id`],
    ["url an object", image({ image_url: { url: png } }), `invalid_type ${at}.image_url`],
    ["detail", image({ image_url: png, detail: "ultra" }), `invalid_value ${at}.detail`],
    ["detail type", image({ image_url: png, detail: 1 }), `invalid_type ${at}.detail`],
    [
      "no base64",
      image({ image_url: "data:image/png;base64,***" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "no image",
      image({ image_url: "data:text/plain;base64,aGk=" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "corrupt",
      image({ image_url: "data:image/png;base64,AAAA" }),
      `invalid_image ${at}.image_url`,
    ],
    [
      "plain http",
      image({ image_url: "http://example.com/a.png" }),
      `invalid_image ${at}.image_url`,
    ],
    ["no url", image({ image_url: "cat.png" }), `invalid_image ${at}.image_url`],
    ["loopback", image({ image_url: "https://127.0.0.1/a.png" }), `invalid_image ${at}.image_url`],
    ["local name", image({ image_url: "https://db.internal/a" }), `invalid_image ${at}.image_url`],
    ["metadata", image({ image_url: "https://169.254.169.254/" }), `invalid_image ${at}.image_url`],
    ["too large", image({ image_url: big(20 * mib + 1) }), `image_too_large ${at}.image_url`],
    [
      "too large together",
      message([11, 10].map((size) => ({ type: "input_image", image_url: big(size * mib) }))),
      "image_too_large input[0].content[1].image_url",
    ],
    [
      "21 images",
      message(Array.from({ length: 21 }, () => ({ type: "input_image", image_url: png }))),
      "image_limit_exceeded input[0].content[20]",
    ],
    [
      "21 images in outputs of calls",
      ask({
        input: Array.from({ length: 21 }, () => ({
          type: "function_call_output",
          call_id: "c",
          output: [{ type: "input_image", image_url: png }],
        })),
      }),
      "image_limit_exceeded input[20].output[0]",
    ],
    ["another's file", image({ file_id: "file_other" }), `reference_not_found ${at}.file_id`],
    ["decoder busy", image({ image_url: "data:image/png;base64,AgAA" }), "rate_limit_exceeded -"],
    [
      "fetched and too large",
      { ...image({ image_url: "https://example.com/large" }), model: "inline-1" },
      `image_too_large ${at}.image_url`,
    ],
    [
      "fetched and gone",
      { ...image({ image_url: "https://example.com/gone" }), model: "inline-1" },
      `invalid_image ${at}.image_url`,
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body)).toBe(expected);
  });

  const sentImage = async (body: object) => {
    const { body: sent } = await prepare(body);
    return (sent.input as { content: object[] }[])[0]?.content[0];
  };
  test("an address goes up as it is", async () => {
    const part = { image_url: "https://example.com/a.png", detail: "low" };
    expect(await sentImage(image(part))).toEqual({ type: "input_image", ...part });
  });
  test("an address is taken inline where the upstream asks for it, a file always", async () => {
    const inline = { type: "input_image", image_url: "data:image/jpeg;base64,/9g=" };
    const byAddress = image({ image_url: "https://example.com/a.png" });
    expect(await sentImage({ ...byAddress, model: "inline-1" })).toEqual(inline);
    expect(await sentImage(image({ file_id: "file_mine" }))).toEqual(inline);
  });
  test("the type is that of the bytes", async () => {
    const lying = image({ image_url: "data:image/png;base64,/9g=" });
    expect(await sentImage(lying)).toMatchObject({ image_url: "data:image/jpeg;base64,/9g=" });
  });
  test("base64 is no text: the bound grows by an image's tokens alone", async () => {
    const none = await prepare(message([{ type: "input_text", text: "x" }]));
    const one = await prepare(image({ image_url: big(15 * mib) }));
    expect(one.bounds.input - none.bounds.input).toBeGreaterThanOrEqual(usualTokensAtLeast);
    expect(one.bounds.input - none.bounds.input).toBeLessThan(usualTokensAtLeast + 100);
    // 64 by 33 pixels are 2 by 2 patches.
    expect(one.guessedInput).toBeLessThan(100);
  });
});
