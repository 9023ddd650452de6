import { may } from "./session.ts";
import type { ModelKind } from "./types.ts";

/** What kinds of models are called, and what a key needs to use them. */
export const modelKinds: readonly {
  value: ModelKind;
  label: string;
  scope: string;
  /** The playground has a form for it. */
  hasForm: boolean;
}[] = [
  { value: "chat", label: "Chat", scope: "text", hasForm: true },
  { value: "image", label: "Image", scope: "images", hasForm: true },
  { value: "video", label: "Video", scope: "videos", hasForm: true },
  { value: "music", label: "Music", scope: "music", hasForm: true },
  { value: "speech", label: "Speech", scope: "speech", hasForm: true },
  { value: "embedding", label: "Embeddings", scope: "text", hasForm: false },
  { value: "transcription", label: "Transcription", scope: "text", hasForm: false },
];

/** The kinds that the reader can try in the playground. */
export const triedKinds = () => modelKinds.filter(({ scope, hasForm }) => hasForm && may(scope));
