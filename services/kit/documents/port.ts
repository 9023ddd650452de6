// The agreement between a store of a service and the documents that it keeps: how they are found, changed and removed. `mongo.ts`
// and `sqlite.ts` implement it.

/** A value that documents are looked for by. */
export type Value = string | number | bigint | boolean;

/** A part of an index, in the order of its key. */
export interface Stretch {
  /** Values of the first fields; a list: any of them. The order is that of the fields that follow. */
  of?: readonly (Value | readonly Value[])[];
  /** Only what lies behind this place in the order: values of one or two of the fields that follow. */
  behind?: readonly Value[];
  /** Only up to this value of the field that follows. */
  upTo?: Value;
  /** Values of other fields; null: the field is not there. */
  and?: Readonly<Record<string, Value | null>>;
  /** The order is turned round. */
  newestFirst?: boolean;
  /** So many are passed over. */
  skip?: number;
  limit?: number;
}

/**
 * The condition on fields of a document: a value, one of several, a number up to a bound, presence or absence, or absence or a lower
 * number.
 */
export type Fit = Readonly<
  Record<
    string,
    Value | readonly Value[] | { upTo: number } | { there: boolean } | { absentOrBelow: number }
  >
>;

/** In place of a document: it is to be removed. */
export const removed = Symbol("removed");

/** Makes of a document the one that it becomes. Undefined: it stays as it is. The step is pure, because it may be called more than once. */
export type Step<D> = (doc: D) => D | typeof removed | undefined;

/** How a document is changed. */
export interface ChangeOptions<D> {
  /**
   * The change carries a name. Where its answer was lost, the store finds it by that name, also after changes of other processes.
   * Without a name the step is called again then, with a document that may have the change already.
   */
  named?: boolean;
  /** The step begins from this where there is no such document. Its result is inserted. For kinds without a unique index. */
  first?: D;
}

/**
 * Documents of one kind, by their id and by indexes. Each method but `setSome` and `removeSome` is atomic; those change one document
 * after the other. All are durable when their promise resolves, may be repeated, and see what was acknowledged before they began. All
 * refuse with SERVICE_UNAVAILABLE where the store is away; whether a change was made is then not known. Undefined
 * fields of a document are not written.
 */
export interface Documents<D, I extends string> {
  /** Writes a document. False where one of its id, perhaps itself, or of its place in a unique index is there: nothing is written then. */
  insert(doc: D): Promise<boolean>;
  find(id: string): Promise<D | undefined>;
  /**
   * Makes a step from the document as it is to the one that the step answers. Answers that one, or what was removed; undefined where the
   * step wants no change, or there is no such document. The id never changes.
   */
  change(id: string, step: Step<D>, options?: ChangeOptions<D>): Promise<D | undefined>;
  /**
   * Sets fields of a document that fits, in one write without a read; undefined: the field goes. All these fields have columns. False
   * where it does not fit. After a lost answer, a set without a name is tried again on the document that may have the fields already.
   */
  set(
    id: string,
    fit: Fit,
    values: Partial<D>,
    options?: Pick<ChangeOptions<D>, "named">,
  ): Promise<boolean>;
  /** Removes a document that fits, by default any; does nothing where there is none. */
  remove(id: string, fit?: Fit): Promise<void>;
  /** Those in a stretch, without some of their fields. */
  seek<K extends keyof D = never>(
    index: I,
    stretch: Stretch & { without?: readonly K[] },
  ): Promise<Omit<D, K>[]>;
  /**
   * Of the first value behind `behind`, in the index's first field, that has documents up to `upTo` in its second: the first of these.
   * Passes over the others of a value at once, however many they are.
   */
  firstOfNext(index: I, place: { behind: Value; upTo: Value }): Promise<D | undefined>;
  /** How many are in a stretch. */
  count(index: I, stretch: Omit<Stretch, "skip" | "limit">): Promise<number>;
  /** Sets fields of those in a stretch, which all have columns; answers how many they were. */
  setSome(index: I, stretch: Stretch, values: Partial<D>): Promise<number>;
  /** Removes those in a stretch; answers how many they were. */
  removeSome(index: I, stretch: Stretch): Promise<number>;
}
