// Finds out whether the gateway has a newer build of the console than this page, so that the shell can offer it.

import { signal } from "@preact/signals";

/** True once a gateway has had another build of the console than this page. */
export const isOutdated = signal(false);

/** Ms between two questions for the build, however often the reader comes back to the page. */
const askAgainMs = 60_000;
let askedAt = Number.NEGATIVE_INFINITY;

/** The main script of a page of the console. Its name has a hash of the build. */
function scriptOf(page: Document): string | null {
  return page.querySelector("script[type=module][src*='/main-']")?.getAttribute("src") ?? null;
}

/** Asks the service whether it has another build. A service that is away says nothing. */
export async function checkBuild(): Promise<void> {
  try {
    const response = await fetch("/console/", { cache: "no-store", credentials: "same-origin" });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const script = scriptOf(page);
    // While gateways are replaced, one answers with this build and one with another. A reload helps in either case.
    if (script !== null && script !== scriptOf(document)) isOutdated.value = true;
  } catch {
    // Not reached. The reader may try again.
  }
}

/** Asks when the reader comes back to the page. */
export function watchBuild(): () => void {
  const ask = () => {
    const isDue = performance.now() - askedAt > askAgainMs;
    if (document.visibilityState !== "visible" || !isDue) return;
    askedAt = performance.now();
    void checkBuild();
  };
  document.addEventListener("visibilitychange", ask);
  return () => document.removeEventListener("visibilitychange", ask);
}
