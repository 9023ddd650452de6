import { join } from "node:path";
import { expect, test } from "vitest";
import { children } from "../support/children.ts";
import { describeS3 } from "./blobs.s3.world.ts";

const script = join(import.meta.dirname, "blobs.s3-child.ts");

await describeS3("an S3 bucket", (s3) => {
  const start = children();

  test("200 MiB go in and out in little memory", async () => {
    const child = start(script, "large", s3.newUrl(), "200");
    expect(await child.next()).toBe("ready");
    child.go();
    expect(await child.next()).toBe("sending");
    const { same, grownMiB } = JSON.parse(await child.next());
    expect(same).toBe(true);
    expect(grownMiB).toBeLessThan(128);
  });
});
