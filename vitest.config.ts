import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{services,gateway,test,bin}/**/*.test.ts"],
    // A real server starts inside several suites; a slow shared machine needs the room.
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
