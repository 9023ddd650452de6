// Lets a request ask the reader for the secret. `api.ts` asks, and `secret-dialog.tsx` shows the question.

import { signal } from "@preact/signals";

export interface SecretQuestion {
  /** The previous secret was not accepted. */
  isSecondTry: boolean;
  answer(secret: string | null): void;
}

/** The shell shows this question as a dialog. The secret is sent with the one request that wanted it, and is not kept. */
export const secretQuestion = signal<SecretQuestion | null>(null);

/** Null: the reader refused to give it. */
export function askForSecret(isSecondTry: boolean): Promise<string | null> {
  secretQuestion.value?.answer(null);
  return new Promise((resolve) => {
    secretQuestion.value = {
      isSecondTry,
      answer(secret) {
        secretQuestion.value = null;
        resolve(secret);
      },
    };
  });
}
