/** Decides whether work waits a turn of the event loop for more of its kind, which could be done together with it. */
export interface Company {
  /** Is it worth waiting a turn for others now? */
  isExpected(): boolean;
  /** Tells how many came together; those that nobody waited for count as well. */
  met(count: number): void;
}

/** Times in a row alone after which nobody is waited for. */
const aloneAfter = 4;
/** Of as many that did not wait, one waits all the same, to see whether others have come meanwhile. */
const lookEvery = 8;

/**
 * Makes one that expects others. Under load hardly any is alone, and waiting saves each a good part of its cost; a lone
 * caller would only wait, at each of its steps.
 */
export function createCompany(): Company {
  let alone = 0;
  let unlooked = 0;
  return {
    isExpected() {
      if (alone < aloneAfter) return true;
      unlooked = (unlooked + 1) % lookEvery;
      return unlooked === 0;
    },
    met(count) {
      alone = count > 1 ? 0 : alone + 1;
    },
  };
}
