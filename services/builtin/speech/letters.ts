// Says by which phonemes a word is spoken or sung, in many scripts.

import type { PhonemeName } from "./phonemes.ts";

/** Letters and their phonemes, whose names are separated by blanks. The longest match is used. */
type Rules = Readonly<Record<string, string>>;

/** Reads `letters: sounds, letters: sounds`. */
function rules(list: string): Rules {
  const pairs = list.split(",").map((pair) => pair.trim().split(": "));
  return Object.fromEntries(pairs);
}

/** Common English words whose spelling does not show their pronunciation. */
const ENGLISH_WORDS = rules(`
  a: ax, all: ao l, and: ae n d, any: eh n iy, are: aa r, be: b iy, beautiful: b y uw t ih f ax l,
  come: k ah m, could: k uh d, do: d uw, eight: ey t, eye: ay, for: f ao r, from: f r ah m,
  have: h ae v, he: h iy, hello: h eh l ow, i: ay, is: ih z, love: l ah v, me: m iy, my: m ay,
  no: n ow, of: ah v, one: w ah n, said: s eh d, she: sh iy, so: s ow, some: s ah m, the: dh ax,
  there: dh eh r, they: dh ey, this: dh ih s, to: t uw, two: t uw, was: w ah z, we: w iy,
  were: w er, what: w ah t, who: h uw, with: w ih dh, world: w er l d, would: w uh d, you: y uw,
  your: y ao r, zero: z iy r ow
`);

const ENGLISH = rules(`
  tion: sh ax n, sion: zh ax n, ough: ao, eigh: ey, igh: ay, tch: t sh, dge: d zh, sch: s k,
  ch: t sh, sh: sh, th: th, ph: f, wh: w, ck: k, qu: k w, ng: ng, nk: ng k, kn: n, wr: r, ee: iy,
  ea: iy, oo: uw, ou: aw, ow: ow, oi: oy, oy: oy, oa: ow, ai: ey, ay: ey, au: ao, aw: ao,
  ew: y uw, ie: iy, ar: aa r, er: er, ir: er, ur: er, or: ao r, ce: s, ci: s ih, cy: s iy,
  ge: d zh, gi: d zh ih, a: ae, b: b, c: k, d: d, e: eh, f: f, g: g, h: h, i: ih, j: d zh, k: k,
  l: l, m: m, n: n, o: aa, p: p, q: k, r: r, s: s, t: t, u: ah, v: v, w: w, x: k s, y: iy, z: z
`);

/** The way in which most other languages in Latin letters read them, with German's pairs. */
const CONTINENTAL: Rules = {
  ...ENGLISH,
  ...rules(`
  tion: t s y ow n, sion: z y ow n, ough: uh, eigh: ay, igh: ih, sch: sh, tsch: t sh, ch: h,
  th: t, wh: v, kn: k n, wr: v r, ee: ey, ea: eh aa, oo: ow, ou: uw, ow: ow, oa: ow aa, ai: ay,
  ei: ay, eu: oy, au: aw, aw: aa v, ew: eh v, ie: iy, er: eh r, ir: iy r, ur: uw r, ce: t s eh,
  ci: t s iy, cy: t s iy, ge: g eh, gi: g iy, gn: n y, ll: l, a: aa, e: eh, i: iy, j: y, o: ao,
  u: uw, w: v, y: iy, z: t s, ä: eh, ö: oe, ü: iy, ß: s, ç: s, ñ: n y
`),
};

/** Cyrillic and Greek letters as Latin ones. */
const TRANSLITERATION: Rules = Object.fromEntries(
  (
    "а a б b в v г g д d е ye ё yo ж zh з z и i й y к k л l м m н n о o п p р r с s т t у u ф f х h " +
    "ц ts ч tsch ш sch щ sch ъ  ы i ь  э e ю yu я ya і i ї yi є ye ґ g " +
    "α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ i φ f χ h ψ ps ω o"
  )
    .split(/ (?=[\u0370-\u04ff])/)
    .map((pair) => [pair.slice(0, 1), pair.slice(2).trim()]),
);

const DIGITS = "zero one two three four five six seven eight nine".split(" ");

/** For a letter of an unknown script a syllable is made of these. */
const ONSETS = "m n t k s l d b sh g h y".split(" ");
const CORES = "aa iy uw eh ao ay ow".split(" ");

/** The phonemes of one word. Letters of unknown scripts get a syllable each, always the same one. */
export function soundsOf(word: string, language: string | undefined): PhonemeName[] {
  const english = language === undefined || /^en(-|$)/i.test(language) || language === "auto";
  const lower = word.toLowerCase().normalize("NFC");
  if (/^\d+$/.test(lower)) {
    return [...lower].flatMap((digit) => soundsOf(DIGITS[Number(digit)] ?? "", "en"));
  }
  // Any word may come, "constructor" too.
  const isKnown = english && Object.hasOwn(ENGLISH_WORDS, lower);
  const known = isKnown ? ENGLISH_WORDS[lower] : undefined;
  if (known !== undefined) return known.split(" ") as PhonemeName[];
  const latin = [...lower].map((letter) => TRANSLITERATION[letter] ?? letter).join("");
  const rules = english && latin === lower ? ENGLISH : CONTINENTAL;
  const names: string[] = [];
  let at = 0;
  while (at < latin.length) {
    const { length, sounds } = matchAt(latin, at, rules);
    names.push(...sounds);
    at += length;
  }
  return names as PhonemeName[];
}

type Match = { readonly length: number; readonly sounds: readonly string[] };

const LONG_VOWELS: Rules = { a: "ey", e: "iy", i: "ay", o: "ow", u: "y uw" };
const LONGEST_RULE = 4;

function matchAt(word: string, at: number, rules: Rules): Match {
  const letter = word[at] as string;
  if (rules === ENGLISH) {
    // "make": a vowel, one consonant and a silent e at the end.
    const long = LONG_VOWELS[letter];
    if (long !== undefined && /^[aeiou][^aeiouwxy]es?$/.test(word.slice(at))) {
      return { length: 1, sounds: long.split(" ") };
    }
    if (letter === "e" && at > 1 && at === word.length - 1) return { length: 1, sounds: [] };
    if (letter === "y" && at === 0) return { length: 1, sounds: ["y"] };
  }
  if (word[at + 1] === letter && /[bcdfghjklmnpqrstvwxz]/.test(letter)) {
    return { length: 1, sounds: [] };
  }
  for (let length = LONGEST_RULE; length > 0; length--) {
    const sounds = rules[word.slice(at, at + length)];
    if (sounds !== undefined) return { length, sounds: sounds.split(" ") };
  }
  const codePoint = word.codePointAt(at) ?? 0;
  const length = codePoint > 0xffff ? 2 : 1;
  const bare = String.fromCodePoint(codePoint).normalize("NFD")[0] as string;
  const plain = bare === letter ? undefined : rules[bare];
  if (plain !== undefined) return { length, sounds: plain.split(" ") };
  if (!/\p{Letter}/u.test(String.fromCodePoint(codePoint))) return { length, sounds: [] };
  const onset = ONSETS[codePoint % ONSETS.length] as string;
  const core = CORES[Math.floor(codePoint / ONSETS.length) % CORES.length] as string;
  return { length, sounds: [onset, core] };
}
