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

/** The choices of a filter, each with its meaning. */
export function choicesOf(meanings: Readonly<Record<string, string>>) {
  return Object.entries(meanings).map(([value, meaning]) => ({
    value,
    label: `${value}: ${meaning.replace(/\.$/, "")}`,
  }));
}
