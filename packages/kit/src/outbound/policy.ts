import {
  classifyAddress,
  embeddedIpv4,
  readAddress,
  type AddressClass,
  type Address,
} from './address.js';
import type { Network } from './network.js';

/** Which addresses may be dialled, whatever name led to them. */
export interface AddressPolicy {
  /** Equal for two policies only if they permit the same addresses; connections are kept by it. */
  readonly key: string;
  /** Why the address must not be dialled, or undefined when it may. */
  denyReason(address: string): string | undefined;
}

const article = (name: AddressClass) => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name} address`;

// Nothing answers HTTP there, and Linux takes 0.0.0.0 for loopback.
const neverOpen: ReadonlySet<AddressClass> = new Set<AddressClass>([
  'invalid',
  'unspecified',
  'this-network',
  'multicast',
  'broadcast',
]);

// Credentials are handed out there, so a wide opening such as 0.0.0.0/0 must not reach them.
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
