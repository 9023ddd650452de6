import { signal } from "@preact/signals";

interface SecretQuestion {
  /** The secret before was not accepted. */
  isSecondTry: boolean;
  answer(secret: string | null): void;
}

/** What the shell shows as a dialog; the secret goes to the one request that wanted it, and is kept nowhere. */
export const secretQuestion = signal<SecretQuestion | null>(null);

/** Null: the reader would rather not. */
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
