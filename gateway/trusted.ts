// Says whether an address is one of the proxies that the operator trusts.

import { BlockList, isIP } from "node:net";

/** Does a connection come from one of the trusted proxies? `list`: addresses and networks, with commas. */
export function trustedAddresses(
  list: string | undefined,
): (address: string | undefined) => boolean {
  const trusted = new BlockList();
  const entries = (list ?? "").split(",").map((entry) => entry.trim());
  for (const entry of entries.filter((one) => one !== "")) {
    const [network = "", bits] = entry.split("/");
    if (bits === undefined) trusted.addAddress(network, familyOf(network));
    else trusted.addSubnet(network, Number(bits), familyOf(network));
  }
  if (trusted.rules.length === 0) return () => false;
  return (address) => {
    // The IPv4 address on a socket that listens for both.
    const plain = address?.replace(/^::ffff:(?=[\d.]+$)/i, "") ?? "";
    return isIP(plain) !== 0 && trusted.check(plain, familyOf(plain));
  };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
