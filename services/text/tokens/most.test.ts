import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "./count.ts";

const counter = createTokenCounter(createWorkshop());
afterAll(() => counter[Symbol.asyncDispose]());

/**
 * The tokens of genmesh's vocabulary for one token of another: of the measured tokenizer that makes the most of such text
 * (docs/decisions/text.md).
 */
const measured: [name: string, ratio: number, text: string][] = [
  ["English", 0.86, "The harbour lay quiet under a thin layer of morning fog. "],
  ["German", 0.8, "Die Schiffe liegen am Kai, und die Hafenarbeiter warten auf die Ladung. "],
  ["TypeScript", 0.81, "export const tides = harbours.map(({ name }) => name.trim());\n"],
  ["base64", 0.83, "bW9vcmluZyBsaW5lcyBhcmUgY2hlY2tlZCBiZWZvcmUgZGF5YnJlYWs"],
  ["digits", 0.34, "3141592653589793238462643383279502884197169399375105820974944592"],
  ["Chinese", 0.58, "港口在清晨的薄雾中十分安静，船只停靠在码头旁。"],
  ["Japanese", 0.72, "港は朝霧の中で静まり、船は岸壁に停泊しています。"],
  ["Korean", 0.36, "항구는 아침 안개 속에서 조용했고 배들은 부두에 정박해 있었다. "],
  ["Russian", 0.55, "Гавань была тихой под тонким слоем утреннего тумана. "],
  ["Arabic", 0.4, "كان الميناء هادئا تحت طبقة رقيقة من ضباب الصباح. "],
  ["Hindi", 0.26, "सुबह के हल्के कोहरे में बंदरगाह शांत था और जहाज़ किनारे पर खड़े थे। "],
  ["Georgian", 0.14, "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა. "],
  ["Armenian", 0.15, "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ։ "],
  ["Burmese", 0.27, "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊ "],
  ["Khmer", 0.35, "មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព ក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរ។ "],
  ["Kannada", 0.18, "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ. ಹಾಗೂ ಘನತೆ ಮತ್ತು ಹಕ್ಕುಗಳಲ್ಲಿ. "],
  ["Kazakh", 0.38, "Барлық адамдар тумысынан азат және қадір-қасиеті мен құқықтары тең. "],
  ["Urdu", 0.29, "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ "],
  ["Greek", 0.41, "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. "],
  ["Hebrew", 0.36, "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. "],
  ["a repetition", 0.5, "ha".repeat(40)],
];

describe("the most tokens that another vocabulary makes of a text", () => {
  test.for(measured)("are nine tenths of what was measured: %s", async ([, ratio, text]) => {
    const { tokens, most } = await counter.measure([text.repeat(20)]);
    expect(most).toBeGreaterThanOrEqual(Math.floor((0.9 * tokens) / ratio));
    // A caller that leaves in good faith pays it too.
    expect(most).toBeLessThanOrEqual(Math.ceil((1.3 * tokens) / ratio));
  });

  test("of a script that was not measured are its bytes", async () => {
    const text = "ދުނިޔެއަށް އުފަންވާ ހުރިހާ އިންސާނުންވެސް ".repeat(20);
    const { most } = await counter.measure([text]);
    const letters = Buffer.byteLength(text.replaceAll(" ", ""));
    expect(most).toBeGreaterThanOrEqual(letters);
    expect(most).toBeLessThanOrEqual(letters * 1.4);
  });

  test("are a token for each newline and each digit, wherever they stand", async () => {
    const { tokens } = await counter.measure(["One two three."]);
    const { most } = await counter.measure([`One two three.${"\n".repeat(300)}${"7".repeat(300)}`]);
    expect(most).toBeGreaterThanOrEqual(600 + tokens);
  });

  test("count as usual beside them", async () => {
    const text = "Pier 7 closes at 18:30. ";
    const { tokens, most } = await counter.measure([text]);
    expect(await counter.count([text])).toBe(tokens);
    expect(most).toBeGreaterThanOrEqual(tokens);
  });
});
