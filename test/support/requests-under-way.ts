/** The number of running public requests at the gateway whose metrics are at `opsUrl`. */
export async function requestsUnderWay(opsUrl: string | undefined): Promise<number> {
  const metrics = await (await fetch(new URL("/metrics", opsUrl))).text();
  return Number(/^genmesh_http_requests_active (\d+)/m.exec(metrics)?.[1]);
}
