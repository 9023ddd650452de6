import { may } from "./session.ts";
import type { ModelKind } from "./types.ts";

/** The names of the kinds of models, and the scope that a key needs to use each. */
export const modelKinds: readonly {
  value: ModelKind;
  label: string;
  scope: string;
  /** The playground has a form for this kind. */
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
