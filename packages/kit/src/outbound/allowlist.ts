import {
  classifyAddress,
  embeddedIpv4,
  readAddress,
  type AddressClass,
  type Address,
  type Network,
  parseNetwork,
} from './address.js';
import { isIP } from 'node:net';
import { UsageError, type FieldError } from '../base/errors.js';
import { defaultPorts, parseAnyTarget, plainHost, type Scheme, type Target } from './target.js';

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

/** One entry of the allowlist in the config file. */
export interface AllowlistEntry {
  scheme: Scheme;
  /** Exact, or `*.example.com`: every name below example.com at any depth, not itself. */
  host: string;
  /** The scheme's own port when absent; `"*"` for any. */
  port?: number | '*';
  /** Matches whole path segments: `/hooks` covers `/hooks` and `/hooks/a`, not `/hooksmith`. Not with gRPC. */
  path_prefix?: string;
  /** Networks outside the public internet that this entry opens. */
  networks?: readonly string[];
}

export type Match = { allowed: true; policy: AddressPolicy } | { allowed: false; reason: string };

export interface Allowlist {
  /**
   * Checks a URL before it is stored. An IP address that no entry allows is denied here; names are
   * checked after DNS resolution.
   */
  match(url: string): Match;
  /** Checks a target before it is called; the policy has the networks of matching entries. */
  matchTarget(target: Target): Match;
}

interface Rule {
  covers(target: Target): boolean;
  networks: readonly Network[];
}

/** Reads the `callback_allowlist` of a config file. An empty list denies everything. */
export function parseAllowlist(input: unknown): Allowlist {
  const { allowlist, errors } = readAllowlist(input);
  if (allowlist !== undefined) return allowlist;
  const lines = errors.map(({ pointer, message }) => `  ${pointer || '/'}: ${message}`);
  throw new UsageError(`The callback allowlist cannot be used:\n${lines.join('\n')}`);
}

/** Like `parseAllowlist`, but hands back each mistake with its JSON pointer. */
export function readAllowlist(input: unknown): { allowlist?: Allowlist; errors: FieldError[] } {
  if (!Array.isArray(input)) {
    return { errors: [{ pointer: '', message: 'must be a list of entries' }] };
  }
  const errors: FieldError[] = [];
  const rules = input.map((entry: unknown, i) => readEntry(entry, `/${i}`, errors));
  if (errors.length > 0) return { errors };
  return { allowlist: allowlistOf(rules.filter((rule) => rule !== undefined)), errors };
}

function allowlistOf(rules: readonly Rule[]): Allowlist {
  const policies = new Map<string, AddressPolicy>();
  const policyFor = (hits: readonly Rule[]): AddressPolicy => {
    const key = hits.map((hit) => rules.indexOf(hit)).join();
    let policy = policies.get(key);
    if (policy === undefined) {
      policy = callbackPolicy(hits.flatMap((hit) => hit.networks));
      policies.set(key, policy);
    }
    return policy;
  };
  const judge = (target: Target): Match => {
    const hits = rules.filter((rule) => rule.covers(target));
    if (hits.length > 0) return { allowed: true, policy: policyFor(hits) };
    return { allowed: false, reason: denial(rules, target) };
  };
  // Cached, because rules and targets are immutable and the same few targets repeat.
  const matches = new WeakMap<Target, Match>();
  const matchTarget = (target: Target): Match => {
    let match = matches.get(target);
    if (match === undefined) {
      match = judge(target);
      matches.set(target, match);
    }
    return match;
  };
  return {
    matchTarget,
    match(url) {
      const parsed = parseAnyTarget(url);
      if (!parsed.ok) return { allowed: false, reason: parsed.reason };
      const { target } = parsed;
      const match = matchTarget(target);
      if (!match.allowed || !target.isAddress) return match;
      const reason = match.policy.denyReason(target.host);
      return reason === undefined ? match : { allowed: false, reason };
    },
  };
}

function denial(rules: readonly Rule[], target: Target): string {
  return rules.length === 0
    ? 'The callback allowlist is empty, so no URL may be called'
    : `${target.origin}${target.pathname} is not on the callback allowlist`;
}

const entryKeys = ['scheme', 'host', 'port', 'path_prefix', 'networks'];

function readEntry(entry: unknown, pointer: string, errors: FieldError[]): Rule | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    errors.push({ pointer, message: 'must be an entry with scheme, host, port and path_prefix' });
    return undefined;
  }
  const fields: Readonly<Record<string, unknown>> = { ...entry };
  const wrong = (key: string, message: string) =>
    void errors.push({ pointer: `${pointer}/${key}`, message });
  for (const key of Object.keys(fields)) {
    if (!entryKeys.includes(key)) wrong(key, `is not known; use ${entryKeys.join(', ')}`);
  }
  const scheme = readScheme(fields['scheme'], wrong);
  const host = readHost(fields['host'], wrong);
  const port = readPort(fields['port'], wrong);
  const prefix = readPrefix(fields['path_prefix'], wrong);
  const networks = readNetworks(fields['networks'], wrong);
  if (scheme?.startsWith('grpc') && fields['path_prefix'] !== undefined) {
    wrong('path_prefix', 'must be absent: a gRPC URL has no path');
  }
  if (scheme === undefined || host === undefined || prefix === undefined) return undefined;
  const wantedPort = port ?? defaultPorts[scheme];
  const covers = (target: Target) =>
    target.scheme === scheme &&
    (wantedPort === '*' || target.port === wantedPort) &&
    host(target) &&
    isUnderPrefix(target.pathname, prefix);
  return { covers, networks };
}

type Wrong = (key: string, message: string) => void;

function readScheme(value: unknown, wrong: Wrong): Scheme | undefined {
  if (typeof value === 'string' && Object.hasOwn(defaultPorts, value)) return value as Scheme;
  wrong('scheme', 'must be "http", "https", "grpc" or "grpcs"');
  return undefined;
}

function readHost(value: unknown, wrong: Wrong): ((target: Target) => boolean) | undefined {
  const advice = 'must be a host such as api.example.com, *.example.com or 10.0.0.5';
  if (typeof value !== 'string') {
    wrong('host', advice);
    return undefined;
  }
  const wild = value.startsWith('*.');
  const host = normalHost(wild ? value.slice(2) : value);
  if (host === undefined || (wild && isIP(host) !== 0)) {
    wrong('host', `${advice}, without scheme, port or path; not "${value}"`);
    return undefined;
  }
  const suffix = `.${host}`;
  return wild ? (target) => target.host.endsWith(suffix) : (target) => target.host === host;
}

/** Normalizes a host like the URL parser, so that both sides of a match agree. */
function normalHost(text: string): string | undefined {
  const bare = isIP(text) === 6 && !text.includes('%') ? `[${text}]` : text;
  if (/[/\\?#@*\s]/.test(bare) || (bare.includes(':') && !/^\[[^\]]*\]$/.test(bare))) {
    return undefined;
  }
  const url = `http://${bare}/`;
  return URL.canParse(url) ? plainHost(new URL(url).hostname) : undefined;
}

function readPort(value: unknown, wrong: Wrong): number | '*' | undefined {
  if (value === undefined || value === '*') return value;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535) {
    return value;
  }
  wrong('port', 'must be a whole number from 1 to 65535, or "*" for any port');
  return undefined;
}

function readPrefix(value: unknown, wrong: Wrong): string | undefined {
  if (value === undefined) return '/';
  if (typeof value === 'string' && isPlainPath(value)) {
    // Set on a URL rather than resolved against one: "//x" would be a host there.
    const url = new URL('http://host/');
    url.pathname = value;
    return url.pathname;
  }
  wrong('path_prefix', 'must be a plain path such as /hooks, without "..", "?", "#" or spaces');
  return undefined;
}

function isPlainPath(text: string): boolean {
  if (!text.startsWith('/') || /[?#\\\s]/.test(text) || isAmbiguous(text)) return false;
  return !text.split('/').some((segment) => segment === '.' || segment === '..');
}

function readNetworks(value: unknown, wrong: Wrong): Network[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    wrong('networks', 'must be a list of networks such as 10.0.0.0/8');
    return [];
  }
  return value.flatMap((item: unknown, i) => {
    const result = parseNetwork(typeof item === 'string' ? item : JSON.stringify(item));
    if (result.ok) return [result.network];
    wrong(`networks/${i}`, result.reason);
    return [];
  });
}

function isUnderPrefix(pathname: string, prefix: string): boolean {
  if (prefix === '/') return true;
  if (!pathname.startsWith(prefix)) return false;
  const next = pathname[prefix.length];
  return (next === undefined || next === '/' || prefix.endsWith('/')) && !isAmbiguous(pathname);
}

/**
 * True for a path that some server would read as another one: an encoded slash, backslash, NUL or
 * dot segment, also when encoded twice, or hidden behind a path parameter as in `/..;/`.
 */
function isAmbiguous(pathname: string): boolean {
  if (!pathname.includes('%') && !pathname.includes(';')) return false;
  return pathname.split('/').some((segment) => {
    let text = segment;
    for (let round = 0; round < 4; round++) {
      const bare = text.replace(/;.*$/s, '');
      if (bare === '.' || bare === '..' || /[/\\\0]/.test(text)) return true;
      const decoded = text.replace(/%[0-9a-f]{2}/gi, (code) =>
        String.fromCharCode(Number.parseInt(code.slice(1), 16)),
      );
      if (decoded === text) return false;
      text = decoded;
    }
    return true;
  });
}

/** Decides which URLs may be called, and at which addresses. */
export type Guard = (target: Target) => { policy: AddressPolicy } | { blocked: string };

/** For queue callbacks: only URLs on the allowlist. */
export function callbackGuard(allowlist: Allowlist): Guard {
  return (target) => {
    const match = allowlist.matchTarget(target);
    return match.allowed ? { policy: match.policy } : { blocked: match.reason };
  };
}

/** For the daemon's webhooks: every URL, but no link-local address. */
export const webhookGuard: Guard = () => ({ policy: webhookPolicy });
