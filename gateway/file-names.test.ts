import { describe, expect, test } from "vitest";
import { dispositionOf, withOneName } from "./file-names.ts";

const exact = "Bild%20%C3%A4%20%E5%9B%BE%E7%89%87%20%F0%9F%A6%8A.png";

describe("a form's part has one name of its file", () => {
  const part = 'form-data; name="file"';
  test.each([
    // The form of browsers and most programs: unencoded.
    [part, part],
    [`${part}; filename="cat.png"`, `${part}; filename="cat.png"`],
    [`${part}; filename="a\\"b;c.png"`, `${part}; filename="a\\"b;c.png"`],
    // Alone, with another before it, behind it, in another case, with a language, of a bare name.
    [`${part}; filename*=UTF-8''${exact}`, `${part}; filename*=UTF-8''${exact}`],
    [`${part}; filename="x.png"; filename*=UTF-8''${exact}`, `${part}; filename*=UTF-8''${exact}`],
    [`${part}; filename*=UTF-8''${exact}; filename="x.png"`, `${part}; filename*=UTF-8''${exact}`],
    [`${part};FileName=x.png;FILENAME*=utf-8'de-DE'${exact}`, `${part}; filename*=UTF-8''${exact}`],
    [
      `form-data; filename*=UTF-8''a.png; name=file`,
      `form-data; name=file; filename*=UTF-8''a.png`,
    ],
    [`${part}; filename*=UTF-8''%61~b.png`, `${part}; filename*=UTF-8''a~b.png`],
    [
      `${part}; filename="x*=UTF-8''y; filename*=z"`,
      `${part}; filename="x*=UTF-8''y; filename*=z"`,
    ],
    // Folders, control characters and half characters are removed.
    [`${part}; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd`, `${part}; filename*=UTF-8''passwd`],
    [`${part}; filename*=UTF-8''C%3A%5Ccat.png`, `${part}; filename*=UTF-8''cat.png`],
    [`${part}; filename*=UTF-8''a%0D%0Ab%00%22.png`, `${part}; filename*=UTF-8''ab%22.png`],
    [`${part}; filename*=UTF-8''gnp.%E2%80%AEtac`, `${part}; filename*=UTF-8''gnp.tac`],
    [
      `${part}; filename*=UTF-8''${"a".repeat(300)}`,
      `${part}; filename*=UTF-8''${"a".repeat(255)}`,
    ],
    // One that cannot be read is ignored: half a character, bytes that are no UTF-8, another charset, a missing ext-value.
    ...[
      "UTF-8''%ED%A0%BD.png",
      "UTF-8''%FF.png",
      "UTF-8''%C3.png",
      "UTF-8''100%.png",
      "iso-8859-1''%E4.png",
      "base64''YWI",
      "\"UTF-8''a.png\"",
      "UTF-8''a b.png",
      "a.png",
      "",
    ].flatMap((value) => [
      [`${part}; filename="x.png"; filename*=${value}`, `${part}; filename="x.png"`],
      [`${part}; filename*=${value}`, `${part}; filename=""`],
    ]),
  ])("%s", (sent, read) => {
    expect(withOneName(sent)).toBe(read);
  });
});

describe("a download has a name in ASCII, and the whole one where it differs", () => {
  test.each([
    ["cat.png", 'filename="cat.png"'],
    ["file_ab-1.mp4", 'filename="file_ab-1.mp4"'],
    ["Bild ä 图片 🦊.png", `filename="Bild_.png"; filename*=UTF-8''${exact}`],
    ["my cat.png", "filename=\"my_cat.png\"; filename*=UTF-8''my%20cat.png"],
    ["🐈.png", "filename=\"file.png\"; filename*=UTF-8''%F0%9F%90%88.png"],
    ["100%41.png", "filename=\"100_41.png\"; filename*=UTF-8''100%2541.png"],
    ["it's (1)*!~.png", "filename=\"it_s_1_.png\"; filename*=UTF-8''it%27s%20%281%29%2A!~.png"],
    ['a"b\r\nc.mp4', "filename=\"a_bc.mp4\"; filename*=UTF-8''a%22bc.mp4"],
    ["a\\b/../c;d.png", "filename=\"c_d.png\"; filename*=UTF-8''c%3Bd.png"],
    ["half \ud83d.png", "filename=\"half_.png\"; filename*=UTF-8''half%20.png"],
    // Signs that join others belong to the name. Signs that join nothing do not.
    [
      "👩\u200d👧.png",
      "filename=\"file.png\"; filename*=UTF-8''%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7.png",
    ],
    [
      "می\u200cرود.png",
      "filename=\"file.png\"; filename*=UTF-8''%D9%85%DB%8C%E2%80%8C%D8%B1%D9%88%D8%AF.png",
    ],
    ["\u200da\u200d.\u200cpng\u200c", 'filename="a.png"'],
    ["no suffix", "filename=\"no_suffix\"; filename*=UTF-8''no%20suffix"],
    ["", 'filename="file"'],
  ])("%j", (name, want) => {
    const header = dispositionOf("attachment", name);
    expect(header).toBe(`attachment; ${want}`);
    expect(header).toMatch(/^[\x20-\x7e]+$/);
    expect(dispositionOf("inline", name)).toBe(`inline; ${want}`);
  });

  test("a name of any characters is bounded, and read back as it is", () => {
    const header = dispositionOf("attachment", "🦊".repeat(1_000));
    expect(header.length).toBeLessThan(4_096);
    const [, encoded = ""] = /filename\*=UTF-8''(\S+)$/.exec(header) ?? [];
    expect(decodeURIComponent(encoded)).toBe("🦊".repeat(255));
  });
});
