import { callForms } from "./chat-calls.ts";
import { chunkForms } from "./chat-chunks.ts";
import type { AnswerForm } from "./form.ts";
import { responsesForms } from "./responses.ts";

/** All forms in which real servers give their answers. */
export const answerForms: readonly AnswerForm[] = [...chunkForms, ...callForms, ...responsesForms];
