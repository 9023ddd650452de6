// Reads the setting that says where the S3 store is, and with which credentials it is reached.

/** Address and credentials of an S3 store. */
export interface S3Target {
  /** TLS. */
  secure: boolean;
  host: string;
  port: number;
  bucket: string;
  region: string;
  accessKey: string;
  secretKey: string;
}

const accepts =
  "must be s3+http://ACCESS:SECRET@HOST:PORT/BUCKET?region=R or s3+https://…, percent-encoded";
/** The names that S3 accepts. Dots are allowed, because path-style addresses carry them. */
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const hostPattern = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const regionPattern = /^[A-Za-z0-9-]{1,63}$/;
const defaultRegion = "us-east-1";

/**
 * Reads `s3+http://ACCESS:SECRET@HOST:PORT/BUCKET?region=R` or `s3+https:`. PORT may be left out (80, 443), and so may the region
 * (us-east-1). Throws a TypeError that names the accepted form and the fault, and repeats nothing of the URL.
 */
export function parseS3Url(text: string): S3Target {
  const scheme = /^s3\+(https?):\/\//.exec(text)?.[1];
  if (scheme === undefined) return wrong("the scheme is another");
  if (!URL.canParse(text)) return wrong("it is no URL");
  const url = new URL(text);
  const secure = scheme === "https";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (!hostPattern.test(url.hostname)) wrong("HOST is neither a name nor an IPv4 address");
  if (port < 1) wrong("PORT is not from 1 to 65535");
  const bucket = url.pathname.slice(1).replace(/\/$/, "");
  if (!bucketPattern.test(bucket)) wrong("BUCKET is not the name of a bucket");
  const region = url.searchParams.get("region") ?? defaultRegion;
  if (!regionPattern.test(region)) wrong("R is not the name of a region");
  const others = [...url.searchParams.keys()].filter((name) => name !== "region");
  if (others.length > 0 || url.hash !== "") wrong("only region may follow the bucket");
  const [accessKey, secretKey] = [decoded(url.username), decoded(url.password)];
  if (accessKey === "" || secretKey === "") wrong("ACCESS or SECRET is missing");
  return { secure, host: url.hostname, port, bucket, region, accessKey, secretKey };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return wrong("ACCESS or SECRET is not percent-encoded");
  }
}

function wrong(fault: string): never {
  throw new TypeError(`${accepts}: ${fault}`);
}
