import { isRef, PdfFile } from "./pdf-file.ts";
import { PdfDict, PdfError, type PdfFault, PdfName, type PdfValue } from "./pdf-syntax.ts";
import { shownBytes } from "./pdf-text.ts";

/** What a PDF holds, by no reader's account less than this. */
export interface MeasuredPdf {
  pages: number;
  /** Bytes of the text on them; undefined: it has no bound that can be told. */
  textBytes: number | undefined;
}

/** Measures a PDF, or says why it is not taken. Takes as long as the file makes it: for a thread. */
export function measurePdf(bytes: Buffer, maxPages: number): MeasuredPdf | PdfFault {
  try {
    const file = new PdfFile(bytes);
    const tree = new PageTree(file, maxPages);
    const pages = tree.pages();
    if (pages === 0) throw new PdfError("uncountable");
    const textBytes = tree.hasSharedPages ? undefined : shownBytes(file, tree.leaves);
    return { pages, textBytes };
  } catch (error) {
    if (error instanceof PdfError) return error.fault;
    // The reading of a hostile file may run into a bound of the machine, like that of nesting.
    if (error instanceof RangeError) return "uncountable";
    throw error;
  }
}

/** Steps from a page tree's root to a page: writers make three or four nodes, of some steps each. */
const maxLevels = 128;

/** The pages of a file: the most that any of its page trees has, whichever version of an object a reader takes. */
class PageTree {
  readonly leaves = new Set<PdfDict>();
  /** May a page stand in a tree twice? Then what it shows is shown more than once. */
  hasSharedPages = false;
  readonly #file: PdfFile;
  readonly #maxPages: number;
  /** Pages below an object, by its number; -1 while they are being counted. */
  readonly #below = new Map<number, number>();
  /** Nodes by their number, or by themselves where they have none: versions of a node are one. */
  readonly #nodes = new Map<PdfDict, number | PdfDict>();
  readonly #parents = new Map<number, number | PdfDict>();

  constructor(file: PdfFile, maxPages: number) {
    this.#file = file;
    this.#maxPages = maxPages;
    for (const [number, versions] of file.objects) {
      for (const { value } of versions) {
        if (value instanceof PdfDict) this.#nodes.set(value, number);
      }
    }
  }

  pages(): number {
    let most = 0;
    let loose = 0;
    for (const dict of this.#file.dicts) {
      const roots = this.#isOf(dict, "Pages") ? [dict, ...dict.all("Pages")] : dict.all("Pages");
      for (const root of roots) most = Math.max(most, this.#count(root, 0));
      if (!this.#isOf(dict, "Page")) continue;
      this.leaves.add(dict);
      loose++;
    }
    // A reader that finds the trees broken takes every page that lies in the file.
    return this.#atMost(Math.max(most, loose));
  }

  #isOf(dict: PdfDict, type: string): boolean {
    const types = dict.all("Type").flatMap((one) => this.#file.resolve(one));
    return types.some((one) => one instanceof PdfName && one.text === type);
  }

  #count(value: PdfValue, level: number): number {
    if (level > maxLevels) throw new PdfError("uncountable");
    if (isRef(value)) return this.#countObject(value.ref, level);
    if (!(value instanceof PdfDict)) return 1;
    const lists = value.all("Kids").flatMap((kids) => this.#file.resolve(kids));
    if (!value.has("Kids")) this.leaves.add(value);
    const node = this.#nodes.get(value) ?? value;
    return lists.reduce<number>((most, kids) => {
      return Math.max(most, Array.isArray(kids) ? this.#countKids(kids, node, level) : 1);
    }, 1);
  }

  #countKids(kids: readonly PdfValue[], node: number | PdfDict, level: number): number {
    const inThis = new Set<number>();
    let sum = 0;
    this.#file.spend(kids.length);
    for (const kid of kids) {
      if (isRef(kid)) {
        const parent = this.#parents.get(kid.ref);
        const isElsewhere = parent !== undefined && parent !== node;
        if (isElsewhere || inThis.has(kid.ref)) this.hasSharedPages = true;
        this.#parents.set(kid.ref, node);
        inThis.add(kid.ref);
      }
      sum = this.#atMost(sum + this.#count(kid, level + 1));
    }
    return sum;
  }

  #countObject(number: number, level: number): number {
    const known = this.#below.get(number);
    // A tree that holds itself has no end.
    if (known === -1) throw new PdfError("uncountable");
    if (known !== undefined) return known;
    this.#below.set(number, -1);
    let most = 1;
    for (const { value } of this.#file.objects.get(number) ?? []) {
      most = Math.max(most, this.#count(value, level + 1));
    }
    this.#below.set(number, most);
    return most;
  }

  #atMost(count: number): number {
    if (count > this.#maxPages) throw new PdfError("too-many-pages");
    return count;
  }
}
