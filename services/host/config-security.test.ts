import { expect, test } from "vitest";
import { envToConfig } from "./config.ts";

const read = (contact: string, expires: string) =>
  envToConfig({ GENMESH_SECURITY_CONTACT: contact, GENMESH_SECURITY_EXPIRES: expires }).security;
const later = "2027-06-30T00:00:00Z";

test("contacts and their end are taken as they are written", () => {
  expect(read("", "")).toBeUndefined();
  expect(read("mailto:a@b.example, https://b.example/report", later)).toEqual({
    contacts: ["mailto:a@b.example", "https://b.example/report"],
    expires: later,
  });
  expect(read("tel:+1-201-555-0123", "2027-06-30T00:00:00.5+02:00")).toBeDefined();
});

test.each([
  ["a@b.example", later, /^GENMESH_SECURITY_CONTACT must be mailto:/],
  ["http://b.example/report", later, /^GENMESH_SECURITY_CONTACT must be mailto:/],
  ["mailto:a@b.example\nHiring: https://c.example", later, /^GENMESH_SECURITY_CONTACT must be/],
  ["", later, /^GENMESH_SECURITY_CONTACT must be set/],
  ["mailto:a@b.example", "", /^GENMESH_SECURITY_EXPIRES must be a time/],
  ["mailto:a@b.example", "2027-06-30", /^GENMESH_SECURITY_EXPIRES must be a time/],
  ["mailto:a@b.example", "2027-13-30T00:00:00Z", /^GENMESH_SECURITY_EXPIRES must be a time/],
])("%j until %j is refused", (contact, expires, fault) => {
  expect(() => read(contact, expires)).toThrow(fault);
});
