import ipaddr from 'ipaddr.js';
import { classOf, readAddress, type Address, type AddressClass } from './address.js';

/** A range of addresses that an allowlist entry opens. */
export interface Network {
  /** The canonical spelling, such as `10.0.0.0/8`. */
  readonly text: string;
  /** The class of the first address in it. */
  readonly startsIn: AddressClass;
  contains(address: Address): boolean;
}

export type NetworkResult = { ok: true; network: Network } | { ok: false; reason: string };

/** Reads `10.0.0.0/8`, `fd00::/8`, or one address without a prefix. */
export function parseNetwork(text: string): NetworkResult {
  const [baseText = '', prefixText, ...rest] = text.split('/');
  const base = baseText.includes('%') ? undefined : readAddress(baseText);
  if (base === undefined || rest.length > 0) {
    return refuse(`"${text}" is not a network; write it as 10.0.0.0/8 or fd00::/8`);
  }
  const maxPrefix = base.kind() === 'ipv4' ? 32 : 128;
  const prefix = prefixText === undefined ? maxPrefix : readPrefix(prefixText);
  if (prefix === undefined || prefix > maxPrefix) {
    return refuse(`"${text}" needs a prefix length from 0 to ${maxPrefix} after the slash`);
  }
  const first = networkStart(base, prefix);
  const canonical = `${first.toString()}/${prefix}`;
  if (first.toString() !== base.toString()) {
    return refuse(
      `"${text}" has bits set beyond its prefix; write ${canonical} for the network ` +
        `or ${base.toString()}/${maxPrefix} for the one address`,
    );
  }
  const network: Network = {
    text: canonical,
    startsIn: classOf(first),
    // IPv4-mapped and translated forms do not match: families never mix.
    contains: (address) => address.kind() === first.kind() && address.match(first, prefix),
  };
  return { ok: true, network };
}

function readPrefix(text: string): number | undefined {
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function networkStart(base: Address, prefix: number): Address {
  const bytes = base.toByteArray().map((byte, i) => {
    const prefixBits = Math.min(8, Math.max(0, prefix - 8 * i));
    return byte & (0xff << (8 - prefixBits)) & 0xff;
  });
  return ipaddr.fromByteArray(bytes);
}

function refuse(reason: string): NetworkResult {
  return { ok: false, reason };
}
