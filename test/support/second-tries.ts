import type { Reporter, TestCase, Vite } from "vitest/node";

/**
 * The options of a test that measures the machine's clock, or of a group of them: the contract promises times (250 ms, 1 s)
 * that a busy machine can miss once; what is wrong is wrong three times. No other test is tried again, and none of money or
 * jobs: what is lost or charged twice once is wrong.
 */
export const measuresClock = { retry: 2 } as const;

/** Lists, at the end of a run, the tests that passed at a second try only, each with what failed at first. */
export function listSecondTries(): Vite.Plugin {
  return {
    name: "list-second-tries",
    // Beside the reporters that the command line names, which would replace one of the configuration.
    configureVitest({ vitest }) {
      const { reporters } = vitest.config;
      if (!reporters.some((one) => one instanceof SecondTries)) reporters.push(new SecondTries());
    },
  };
}

class SecondTries implements Reporter {
  #lines: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { retryCount = 0 } = test.diagnostic() ?? {};
    if (retryCount === 0) return;
    const [first] = test.result().errors ?? [];
    const why = first?.message.split("\n")[0] ?? "";
    this.#lines.push(`  ${test.module.relativeModuleId} > ${test.fullName}: ${why}`);
  }

  onTestRunEnd(): void {
    if (this.#lines.length > 0) {
      process.stdout.write(`\nneeded a second try:\n${this.#lines.join("\n")}\n`);
    }
    this.#lines = [];
  }
}
