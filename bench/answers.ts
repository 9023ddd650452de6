/** Text deltas of one streamed answer: about as many as a short paragraph has. */
export const deltasPerStream = 100;

const words = ["The ", "river ", "runs ", "past ", "the ", "mill ", "and ", "on ", "to ", "sea. "];
/** Least bytes of such an answer. A shorter one broke off. */
export const leastStreamBytes = deltasPerStream * "event: response.output_text.delta".length;
/** A complete answer in the form of a model server. */
export function jsonAnswer(): Buffer {
  return Buffer.from(JSON.stringify(response("completed", deltasOf(deltasPerStream))));
}

/** The same answer as `count` deltas: the part before the first delta, each delta, and the part after the last. */
export function streamAnswer(count = deltasPerStream): {
  head: Buffer;
  deltas: Buffer[];
  tail: Buffer;
} {
  const deltas = deltasOf(count);
  let number = 0;
  const event = (type: string, rest: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...rest })}\n\n`;
  const at = { item_id: "msg_bench", output_index: 0, content_index: 0 };
  const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const item = message("in_progress", []);
  const head = [
    event("response.created", { response: response("in_progress", deltas) }),
    event("response.in_progress", { response: response("in_progress", deltas) }),
    event("response.output_item.added", { output_index: 0, item }),
    event("response.content_part.added", { ...at, part: part("") }),
  ];
  const middle = deltas.map((delta) =>
    event("response.output_text.delta", { ...at, delta, logprobs: [] }),
  );
  const text = deltas.join("");
  const tail = [
    event("response.output_text.done", { ...at, text, logprobs: [] }),
    event("response.content_part.done", { ...at, part: part(text) }),
    event("response.output_item.done", {
      output_index: 0,
      item: message("completed", [part(text)]),
    }),
    event("response.completed", { response: response("completed", deltas) }),
    "data: [DONE]\n\n",
  ];
  return {
    head: Buffer.from(head.join("")),
    deltas: middle.map((one) => Buffer.from(one)),
    tail: Buffer.from(tail.join("")),
  };
}

function message(status: string, content: object[]): object {
  return { type: "message", id: "msg_bench", status, role: "assistant", content };
}

function deltasOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => words[i % words.length] ?? "");
}

function response(status: "in_progress" | "completed", deltas: readonly string[]): object {
  const isOver = status === "completed";
  const content = [{ type: "output_text", text: deltas.join(""), annotations: [], logprobs: [] }];
  return {
    id: "resp_bench",
    object: "response",
    created_at: 1_767_225_600,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: "bench",
    output: isOver ? [message(status, content)] : [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    usage: isOver ? usageOf(deltas) : null,
    user: null,
    metadata: {},
  };
}

function usageOf({ length }: readonly string[]): object {
  return {
    input_tokens: 12,
    output_tokens: length,
    total_tokens: 12 + length,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
}
