import { describe, expect, it } from "vitest";
import { isLocalName, isLocalNameOrNonPublicLiteral, isWebPort, parseOutsideUrl } from "./url.ts";

describe("parseOutsideUrl", () => {
  it.each([
    "http://example.com",
    "HTTPS://EXAMPLE.com:8443/a?b=c#d",
    "https://[2606:4700::1]/",
    "http://bücher.example.com/ä",
    "http://8.8.8.8/mail@host",
  ])("takes %s", (text) => {
    expect(parseOutsideUrl(text).href).toBe(new URL(text).href);
  });

  it.each([
    "",
    "example.com/a.png",
    "//example.com/a.png",
    "http:example.com",
    "http:/example.com",
    "http:///example.com",
    "http:\\\\example.com",
    "http://",
    "ftp://example.com/",
    "file:///etc/passwd",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "blob:http://example.com/1",
    "ws://example.com/",
    "http://user@example.com/",
    "http://user:word@example.com/",
    "http://@example.com/",
    "http://:@example.com/",
    "http://exa mple.com/",
    " http://example.com/",
    "http://example.com/\n",
    "http://exam\tple.com/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com:99999/",
    "http://[::1%25lo]/",
    "http://[::1/",
    "http://1.2.3.4.5/",
    "http://256.256.256.256/",
    `http://example.com/${"a".repeat(8192)}`,
  ])("refuses %j", (text) => {
    expect(() => parseOutsideUrl(text)).toThrow(expect.objectContaining({ kind: "invalid_url" }));
  });
});

it("knows web ports from the others", () => {
  const isAllowed = (port: string) => isWebPort(new URL(`http://example.com${port}/`));
  for (const port of ["", ":80", ":443", ":1024", ":3000", ":8081", ":8443", ":9000", ":65535"]) {
    expect([port, isAllowed(port)]).toEqual([port, true]);
  }
  for (const port of [":0", ":1", ":22", ":25", ":81", ":1023", ":3306", ":6379", ":27017"]) {
    expect([port, isAllowed(port)]).toEqual([port, false]);
  }
});

it.each([
  "localhost",
  "LOCALHOST.",
  "a.localhost",
  "intranet",
  "mongo",
  "com.",
  "printer.local",
  "metadata.google.internal",
  "billing.genmesh.svc",
  "billing.genmesh.svc.cluster.local",
  "router.lan",
  "nas.home.arpa",
  "web.test",
  "1.0.0.127.in-addr.arpa",
  "1.2.3.4.5",
  "foo.0x7f",
  "localhost..",
  "127.0.0.1..",
  "a..example.com",
  "",
])("takes %j for a local name", (name) => {
  expect(isLocalName(name)).toBe(true);
});

it.each(["example.com", "example.com.", "localhost.com", "local.example.org", "xn--bcher-kva.de"])(
  "takes %j for no local name",
  (name) => expect(isLocalName(name)).toBe(false),
);

it("refuses by the text alone what is local, private or no URL", () => {
  for (const text of [
    "https://localhost/a.png",
    "https://10.0.0.1/a.png",
    "https://0x0a000001/a.png",
    "https://[::ffff:8.8.8.8]/a.png",
    "https://[fd00::1]/a.png",
    "https://db.internal/a.png",
    "https://user@example.com/a.png",
    "not a url",
  ]) {
    expect([text, isLocalNameOrNonPublicLiteral(text)]).toEqual([text, true]);
  }
  for (const text of ["https://example.com/a.png", "http://8.8.8.8/", "https://[2606:4700::1]/"]) {
    expect([text, isLocalNameOrNonPublicLiteral(text)]).toEqual([text, false]);
  }
});
