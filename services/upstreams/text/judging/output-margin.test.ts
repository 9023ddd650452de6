import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "../../../text/tokens/count.ts";
import { compositionOf, countedText, mostTokens } from "./output-margin.ts";

const counter = createTokenCounter(createWorkshop());
afterAll(() => counter[Symbol.asyncDispose]());

/**
 * The fewest tokens that any of seven tokenizers gives for a text, as measured: cl100k, Llama 2 and 3, Mistral, Qwen 2.5, Gemma and
 * DeepSeek V3.
 */
const measured: [name: string, text: string, fewest: number, by: string][] = [
  [
    "English",
    "The sea covers most of the planet, and what lives in its deepest trenches has hardly been seen by anyone. ".repeat(
      20,
    ),
    441,
    "cl100k",
  ],
  [
    "German",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen. ".repeat(
      10,
    ),
    321,
    "Gemma",
  ],
  [
    "Indonesian",
    "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal dan hati nurani. ".repeat(
      10,
    ),
    291,
    "Gemma",
  ],
  [
    "TypeScript",
    "export function priceOf(spec: ChatSpec): TextPrice {\n  return { input: spec.input, output: spec.output ?? 0n };\n}\n".repeat(
      10,
    ),
    300,
    "cl100k",
  ],
  [
    "Python",
    "def price_of(spec):\n    if spec is None:\n        return 0\n    return spec['input'] * 1_000_000 // spec['rate']\n".repeat(
      10,
    ),
    340,
    "cl100k",
  ],
  [
    "JSON",
    '{"id": "resp_1", "items": [{"name": "whale", "count": 12, "price": 19.95}, {"name": "cod", "count": 3, "price": null}]}\n'.repeat(
      10,
    ),
    500,
    "cl100k",
  ],
  [
    "LaTeX",
    "\\frac{\\partial^2 u}{\\partial t^2} = c^2 \\nabla^2 u \\quad \\text{for all } x \\in \\mathbb{R}^n\\\\\n".repeat(
      10,
    ),
    380,
    "DeepSeek",
  ],
  [
    "base64",
    Buffer.from(
      "The sea covers most of the planet, and what lives in it is hardly known: whales, cod, squid",
    )
      .toString("base64")
      .repeat(10),
    760,
    "DeepSeek",
  ],
  [
    "Chinese",
    "人工智能是计算机科学的一个分支,它企图了解智能的实质,并生产出一种新的能以人类智能相似的方式做出反应的智能机器。".repeat(
      10,
    ),
    280,
    "DeepSeek",
  ],
  [
    "Japanese",
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。".repeat(
      10,
    ),
    410,
    "Gemma",
  ],
  ["Thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ".repeat(10), 279, "DeepSeek"],
  ["Tibetan", "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང༌། ".repeat(10), 400, "Gemma"],
  ["Cherokee", "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ ᏚᏳᎧᏛ ᎨᏒᎢ. ".repeat(10), 410, "Gemma"],
  ["emoji", "😀🎉🌊🐙🚀🦑🪸🫠".repeat(40), 320, "Gemma"],
  ["laughter", "ha".repeat(600), 150, "Gemma"],
  ["one letter", "x".repeat(1_000), 63, "Gemma"],
  ["newlines", "\n".repeat(1_000), 32, "cl100k"],
  ["dots", ".".repeat(1_000), 9, "DeepSeek"],
];

const limitOf = (text: string, tokens: number) => mostTokens(tokens, compositionOf(text));

describe("an upstream that keeps to its bound by its own tokenizer is within the margin", () => {
  test.for(measured)("%s", async ([, text, fewest]) => {
    expect(await counter.count([countedText(text)])).toBeLessThanOrEqual(limitOf(text, fewest));
  });

  test("in an answer to a call whose server writes what is not ASCII as escapes", async () => {
    const [, text = "", fewest = 0] = measured.find(([name]) => name === "Chinese") ?? [];
    const escaped = text.replace(/[^\0-\x7f]/g, (character) => {
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
    });
    expect(countedText(escaped)).toBe(text);
    expect(await counter.count([countedText(escaped)])).toBeLessThan(2.5 * fewest);
  });
});

describe("the margin", () => {
  const close = ["English", "Indonesian", "TypeScript", "Python", "JSON", "LaTeX", "base64"];
  test.for(measured.filter(([name]) => close.includes(name)))("of %s is a quarter", ([, text]) => {
    expect(limitOf(text, 1_000)).toBe(1_266);
  });
  test("of other scripts is the bound, of rare ones and emoji half as much again", () => {
    expect(limitOf("海はとても広い", 1_000)).toBe(2_016);
    expect(limitOf("🌊🦑🪸", 1_000)).toBe(2_516);
    expect(limitOf("ha".repeat(1_000), 1_000)).toBeGreaterThan(2_480);
  });
  test("of a mixture is what is in between", () => {
    const english = "The sea is wide. ";
    expect(limitOf(`${english.repeat(90)}海`, 1_000)).toBeLessThan(1_270);
    const half = limitOf(`${english.repeat(10)}${"海はとても広い".repeat(8)}`, 1_000);
    expect(half).toBeGreaterThan(1_600);
    expect(half).toBeLessThan(1_700);
  });
  test("of a long text is that of parts of it", () => {
    const long = `${"The sea is wide. ".repeat(100_000)}${"海はとても広い".repeat(81_000)}`;
    const limit = limitOf(long, 1_000);
    expect(limit).toBeGreaterThan(1_550);
    expect(limit).toBeLessThan(1_800);
  });
  test("English that is spelled in escapes is counted as it is spelled", () => {
    const spelled = "\\u0054\\u0068\\u0065";
    expect(countedText(`${spelled} \\u003cb\\u003e \\u6d77`)).toBe(`${spelled} <b> 海`);
  });
});
