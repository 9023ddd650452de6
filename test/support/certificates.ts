import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The reason why certificates cannot be made here. Undefined where they can. */
export const noCertificates = reasonAgainst();

/** A certificate and its key in PEM. */
export interface Pair {
  cert: string;
  key: string;
}

/** An authority of a test's own. */
export interface Authority {
  /** Its certificate in PEM. */
  ca: string;
  /** A new pair for `names` (DNS names and addresses), for servers and clients. It is valid for a day. */
  issue(...names: string[]): Promise<Pair>;
  /** A new pair that signs manifests of files, for an organization. It is valid for a day. `cert` has the authority's behind it. */
  issueSigner(organization: string, usage?: string): Promise<Pair>;
}

/** Makes authorities and holds their files until it is disposed of. */
export interface CertificateFolder extends AsyncDisposable {
  path: string;
  authority(name?: string): Promise<Authority>;
}

export async function certificateFolder(): Promise<CertificateFolder> {
  const path = await mkdtemp(join(tmpdir(), "genmesh-certificates-"));
  let made = 0;
  const make = async (args: string[]): Promise<Pair & { files: { cert: string; key: string } }> => {
    const files = { cert: join(path, `${++made}.crt`), key: join(path, `${made}.key`) };
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    const out = ["-keyout", files.key, "-out", files.cert, "-days", "1"];
    await run("openssl", ["req", "-x509", ...key, ...out, ...args]);
    const [cert, secret] = await Promise.all([
      readFile(files.cert, "utf8"),
      readFile(files.key, "utf8"),
    ]);
    return { cert, key: secret, files };
  };
  return {
    path,
    async authority(name = "authority") {
      const own = await make(["-subj", `/CN=${name}`]);
      const issued = ["-CA", own.files.cert, "-CAkey", own.files.key];
      return {
        ca: own.cert,
        async issue(...names) {
          const alternatives = names.map((one) => (/^[\d.]+$/.test(one) ? "IP:" : "DNS:") + one);
          return make([
            ...["-subj", `/CN=${names[0]}`, ...issued],
            ...["-addext", `subjectAltName=${alternatives.join(",")}`],
            ...["-addext", "basicConstraints=critical,CA:FALSE"],
          ]);
        },
        async issueSigner(organization, usage = "emailProtection") {
          const pair = await make([
            ...["-subj", `/O=${organization}/CN=signer`, ...issued],
            ...["-addext", "basicConstraints=critical,CA:FALSE"],
            ...["-addext", "keyUsage=critical,digitalSignature"],
            ...["-addext", `extendedKeyUsage=${usage}`],
          ]);
          return { ...pair, cert: pair.cert + own.cert };
        },
      };
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** A folder with `tls.crt`, `tls.key` and `ca.crt`, changed like a secret that Kubernetes mounts: by one link. */
export interface MountedSecret {
  files: { certFile: string; keyFile: string; caFile: string };
  replace(content: { cert: string; key: string; ca: string }): Promise<void>;
}

/** Mounts a first content below the folder. */
export async function mountSecret(
  folder: CertificateFolder,
  first: { cert: string; key: string; ca: string },
): Promise<MountedSecret> {
  const root = await mkdtemp(join(folder.path, "secret-"));
  const of = (name: string) => join(root, name);
  const replace: MountedSecret["replace"] = async ({ cert, key, ca }) => {
    const data = await mkdtemp(of("..at-"));
    await Promise.all([
      writeFile(join(data, "tls.crt"), cert),
      writeFile(join(data, "tls.key"), key),
      writeFile(join(data, "ca.crt"), ca),
    ]);
    await symlink(data, of("..data_tmp"));
    await rename(of("..data_tmp"), of("..data"));
  };
  await replace(first);
  for (const name of ["tls.crt", "tls.key", "ca.crt"])
    await symlink(join("..data", name), of(name));
  return {
    files: { certFile: of("tls.crt"), keyFile: of("tls.key"), caFile: of("ca.crt") },
    replace,
  };
}

function reasonAgainst(): string | undefined {
  try {
    const version = execFileSync("openssl", ["version"], { encoding: "utf8" }).trim();
    return /^OpenSSL ([3-9]|\d\d)\./.test(version)
      ? undefined
      : `OpenSSL 3 is needed, not ${version}`;
  } catch {
    return "the openssl command is missing";
  }
}
