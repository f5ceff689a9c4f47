import {
  classifyAddress,
  embeddedIpv4,
  readAddress,
  type AddressClass,
  type Address,
} from './address.js';
import type { Network } from './network.js';

/** Decides which addresses may be connected to. */
export interface AddressPolicy {
  /** Equal only for policies that allow the same addresses; part of the connection pool key. */
  readonly key: string;
  /** Why the address must not be dialled, or undefined when it may. */
  denyReason(address: string): string | undefined;
}

const article = (name: AddressClass) => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name} address`;

// No HTTP servers are there, and Linux treats 0.0.0.0 as loopback.
const neverOpen: ReadonlySet<AddressClass> = new Set<AddressClass>([
  'invalid',
  'unspecified',
  'this-network',
  'multicast',
  'broadcast',
]);

// Metadata services hand out credentials, so a wide network such as 0.0.0.0/0 does not include them.
const openedByNameOnly: ReadonlySet<AddressClass> = new Set<AddressClass>([
  'link-local',
  'metadata',
]);

/** For queue callbacks: the public internet, and what the allowlist entry opens. */
export function callbackPolicy(networks: readonly Network[] = []): AddressPolicy {
  const key = [...new Set(networks.map((network) => network.text))].toSorted().join(' ');
  return {
    key: `callback ${key}`,
    denyReason(text) {
      const address = readAddress(text);
      const name = classifyAddress(text);
      if (address === undefined || neverOpen.has(name)) return `${text} is ${article(name)}`;
      if (name === 'public' || networks.some((network) => opens(network, address, name))) {
        return undefined;
      }
      return `${text} is ${article(name)} that no matching allowlist entry opens`;
    },
  };
}

function opens(network: Network, address: Address, name: AddressClass): boolean {
  if (openedByNameOnly.has(name) && network.startsIn !== name) return false;
  return network.contains(address);
}

const refusedForWebhooks: ReadonlySet<AddressClass> = new Set<AddressClass>([
  ...neverOpen,
  ...openedByNameOnly,
]);

/** For the daemon's webhooks: loopback and LAN are fine, link-local and metadata are not. */
export const webhookPolicy: AddressPolicy = {
  key: 'webhook',
  denyReason(text) {
    for (const address of [text, ...embeddedIpv4(text)]) {
      const name = classifyAddress(address);
      if (!refusedForWebhooks.has(name)) continue;
      return address === text
        ? `${text} is ${article(name)}`
        : `${text} leads to ${address}, ${article(name)}`;
    }
    return undefined;
  },
};
