import { test } from "vitest";
import { restartInTurn } from "./rolling.ts";
import { describeMesh } from "./servers.ts";

const timeout = 300_000;
/** A checkout of an older release with its packages installed. */
const { GENMESH_TEST_FORMER: former } = process.env;

await describeMesh("a rolling restart", () => {
  test(
    "of every process in turn under load fails no request, and begins no generation again",
    { timeout },
    () => restartInTurn(),
  );

  test.skipIf(former === undefined).each(["callers first", "called first"] as const)(
    "from a former release to this one does no more harm: %s",
    { timeout },
    (order) => restartInTurn({ from: former ?? "", order }),
  );
});
