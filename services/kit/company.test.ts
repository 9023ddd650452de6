import { expect, test } from "vitest";
import { createCompany } from "./company.ts";

/** How many of so many in a row waited for others, each meeting `count`. */
function waitedOf(company: ReturnType<typeof createCompany>, times: number, count: number): number {
  let waited = 0;
  for (let i = 0; i < times; i++) {
    if (company.isExpected()) waited++;
    company.met(count);
  }
  return waited;
}

test("who meets others goes on to wait for them", () => {
  expect(waitedOf(createCompany(), 100, 3)).toBe(100);
});

test("who is alone soon waits no more, but looks now and then", () => {
  const company = createCompany();
  waitedOf(company, 10, 1);
  const waited = waitedOf(company, 80, 1);
  expect(waited).toBe(10);
});

test("who finds others when it looks waits from then on", () => {
  const company = createCompany();
  waitedOf(company, 100, 1);
  company.met(2);
  expect(waitedOf(company, 4, 2)).toBe(4);
});
