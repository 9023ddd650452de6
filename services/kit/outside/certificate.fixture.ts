// Makes certificates for test servers that speak https.

import { generateKeyPairSync, sign } from "node:crypto";
import { isIPv4 } from "node:net";

/** A self-signed certificate and its key, both PEM, for the given names and IPv4 addresses. */
export function selfSigned(subjects: readonly string[]): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ecdsaWithSha256 = der(0x30, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const commonName = der(0x30, oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from("test")));
  const name = der(0x30, der(0x31, commonName));
  const alternatives = subjects.map((subject) =>
    isIPv4(subject)
      ? der(0x87, Buffer.from(subject.split(".").map(Number)))
      : der(0x82, Buffer.from(subject)),
  );
  const subjectAltName = der(0x30, oid(0x55, 0x1d, 0x11), der(0x04, der(0x30, ...alternatives)));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    ecdsaWithSha256,
    name,
    der(0x30, time("20200101000000Z"), time("21200101000000Z")),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, subjectAltName)),
  );
  const signature = Buffer.concat([Buffer.of(0), sign("sha256", body, privateKey)]);
  const bytes = der(0x30, body, ecdsaWithSha256, der(0x03, signature)).toString("base64");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${bytes}\n-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length = content.length;
  const header = length < 128 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...header), content]);
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function time(text: string): Buffer {
  return der(0x18, Buffer.from(text));
}
