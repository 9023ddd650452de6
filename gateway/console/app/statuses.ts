// Says in words what each status means. Lists show it beside the status.

/** The meaning of each status of a request, in a sentence or two. */
export const requestStatuses: Readonly<Record<string, string>> = {
  completed: "It has its whole answer.",
  incomplete: "Its answer was cut at the bound of its output.",
  failed: "It was accepted, and then failed.",
  cancelled: "Its caller cancelled the job. That is no failure.",
  left: "Its caller left before the end of the answer.",
  ended: "The service ended it before its end.",
  unsent: "Its caller left before a model got it.",
  lost: "The process that ran it died, and another one settled it.",
};

/** The meaning of each status of a job. */
export const jobStatuses: Readonly<Record<string, string>> = {
  queued: "It waits for its turn.",
  running: "It is being made.",
  completed: "Its files are there.",
  failed: "It could not be made, and costs nothing.",
  cancelled: "Its caller cancelled it. That is no failure.",
};

/** The meaning of every status that the console shows, by the kind of thing that has it. */
export const statusMeanings = {
  request: requestStatuses,
  job: jobStatuses,
  delivery: {
    pending: "It is sent, or waits for its next attempt. Attempts go on for a day.",
    delivered: "Its receiver answered with a status from 200 to 299.",
    failed: "No attempt of a day was answered with a status from 200 to 299. No other follows.",
    stopped: "Its receiver answered 410, which means that it wants no more of it.",
  },
  /** `lastError` of a delivery. */
  deliveryError: {
    unsafe: "Its address is not a public one.",
    unreachable: "Its receiver could not be reached.",
    timeout: "Its receiver did not answer within 10 seconds.",
    redirect: "Its receiver answered with a redirect, which is not followed.",
    status: "Its receiver answered with a status that says no.",
  },
  key: {
    active: "It may be used.",
    disabled: "It is refused until it is enabled again.",
    expired: "Its last day is over, and it is refused.",
    revoked: "It was deleted, and is refused for good.",
    this_session: "You are signed in with this key.",
  },
  account: {
    active: "Its keys may be used.",
    suspended: "Its keys may only read. What runs ends, and is charged.",
    closing: "It is being closed: what runs ends, and its files are deleted.",
    closed: "It was closed. Its keys are refused, and its ledger stays.",
  },
  /** An operator who signs in by name. */
  operator: {
    active: "They may sign in.",
    disabled: "They may not sign in until they are enabled again.",
    pending: "Not set up yet.",
  },
  file: { processed: "Its image was checked, and jobs and messages may refer to it." },
  entry: {
    grant: "An operator added to the balance.",
    charge: "A request or job was charged when it ended.",
    refund: "An operator gave a charge back, or a part of it.",
    "grant taken back": "An operator took a grant back, or a part of it.",
  },
  /** An entry of the journal, which operators see in full. */
  journal: {
    grant: "An operator added to the balance.",
    hold: "A request or job began: the most that it may cost is held.",
    settle: "A request or job ended: what it cost is charged, and the rest is free again.",
    release: "A request or job ended without a charge: all that was held is free again.",
    extend: "What is held may be held for longer.",
    draw: "A charge was taken from what is free.",
    refund: "An operator gave a charge back, or a part of it.",
    "take back": "An operator took a grant back, or a part of it.",
  },
  hold: {
    text: "A text request runs. Its end charges what it cost, and frees the rest.",
    speech: "A speech is being made. Its end charges what it cost, and frees the rest.",
    job: "A job waits or runs. Its end charges what it cost, and frees the rest.",
  },
  upstream: {
    healthy: "It answers.",
    failing: "More than a fifth of its requests failed.",
    account_empty: "It refused a request because your account there is empty.",
    unknown: "No request was sent to it yet.",
  },
  /** The outcome of an operator's act. */
  act: {
    done: "The change was made.",
    refused: "Nothing was changed.",
    started: "It began. Whether it was made is not known.",
  },
} satisfies Record<string, Readonly<Record<string, string>>>;

/** A kind of thing that has a status. */
export type StatusOf = keyof typeof statusMeanings;

/** The meaning of a status. A status of a later release has none. */
export function meaningOf(of: StatusOf, value: string): string | undefined {
  const meanings: Readonly<Record<string, string>> = statusMeanings[of];
  return Object.hasOwn(meanings, value) ? meanings[value] : undefined;
}

/** The choices of a filter, each with its meaning. */
export function choicesOf(meanings: Readonly<Record<string, string>>) {
  return Object.entries(meanings).map(([value, meaning]) => ({
    value,
    label: `${value}: ${meaning.replace(/\.$/, "")}`,
  }));
}
