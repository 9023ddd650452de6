// The table of the ends that a try can have, and what each means: whether the request moves on, and how long the upstream rests.

/** The end of one try at a lane, before its first event. */
export type Outcome =
  /** It answers. */
  | "answered"
  /** It refused the request itself: its form, its length or its content. Every lane would. */
  | "refused"
  /** No connection, a reset, a fault of TLS, 5xx, or an error or garbage in place of the first event. */
  | "failed"
  /** It may have worked on the request and be paid for that: our time ran out, or it reported usage. */
  | "perhaps_paid"
  /** 429, 529, or its word for being overloaded. */
  | "limited"
  /** This one request is larger than the operator's rate or credit there. */
  | "over_limit"
  /** The operator's account there has no money left. */
  | "account_empty"
  /** It does not accept the key, or there is none. */
  | "key_refused"
  /** It does not serve the region that it is asked from. */
  | "region_refused"
  /** It does not have the model. */
  | "model_missing"
  /** It was not asked: none of its places came free in time. */
  | "full"
  /** The caller left, or it lacks the operation. This says nothing about it. */
  | "open";

/** How long a lane rests. Each rest in a row is twice as long as the one before, up to the longest. */
export interface Rest {
  firstMs: number;
  longestMs: number;
  /** It begins only after several failures. */
  afterFailures?: true;
  /** Its length is what the upstream asks for, where it asks. */
  asAsked?: true;
  /** It is for the model of the request alone. */
  ofModel?: true;
}

/** A lane that fails comes back within seconds. A minute is the longest for which a recovered one is left out. */
const afterFailures: Rest = { firstMs: 5_000, longestMs: 60_000, afterFailures: true };
/** Limits count by the second or the minute. */
const asAsked: Rest = { firstMs: 5_000, longestMs: 60_000, asAsked: true };
/** An operator pays in. That takes minutes. */
const forMoney: Rest = { firstMs: 60_000, longestMs: 600_000 };
/** An operator mends the key or the catalog. */
const forMending: Rest = { firstMs: 60_000, longestMs: 60_000 };

/** The consequence of an outcome for its request and its lane. */
export interface Consequence {
  /** May the request try the next lane? */
  mayMove: boolean;
  rest?: Rest;
  /** Says something of the lane: without a rest, that it works. Default: true. */
  isTelling?: false;
}

/** Every outcome and its consequence. */
export const outcomes: Readonly<Record<Outcome, Consequence>> = {
  answered: { mayMove: false },
  refused: { mayMove: false },
  failed: { mayMove: true, rest: afterFailures },
  perhaps_paid: { mayMove: false, rest: afterFailures },
  limited: { mayMove: true, rest: asAsked },
  // It says nothing of smaller requests, so one caller's large request must not rest the lane for all.
  over_limit: { mayMove: true, isTelling: false },
  account_empty: { mayMove: true, rest: forMoney },
  key_refused: { mayMove: true, rest: forMending },
  region_refused: { mayMove: true, rest: forMending },
  model_missing: { mayMove: true, rest: { ...forMending, ofModel: true } },
  full: { mayMove: true, isTelling: false },
  open: { mayMove: false, isTelling: false },
};
