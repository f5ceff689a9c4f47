import { validateHeaderName, validateHeaderValue } from 'node:http';

// Hop-by-hop fields (RFC 9110, 7.6.1) and fields that the client sets itself.
const ownedByConnection: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'content-length',
]);

/** `owned`: set by the client itself. `options`: the Connection field, which names more fields. */
type NameKind = 'passed' | 'owned' | 'options';

const invalidValue = /[^\t\x20-\x7e\x80-\xff]/;
const maxCachedNames = 1_000;
const maxCachedNameLength = 64;
const kinds = new Map<string, NameKind>();

/**
 * The outgoing headers as a flat list of names and values. Throws a TypeError on invalid ones;
 * callers validate user input before.
 */
export function outgoingHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  let options: string | undefined;
  for (const name of Object.keys(headers)) {
    const value = headers[name]!;
    const kind = kinds.get(name) ?? kindOf(name);
    if (kind === 'options') options = value.toLowerCase();
    if (kind !== 'passed') continue;
    // Node's check is slow, so it only runs to produce its error.
    if (typeof value !== 'string' || invalidValue.test(value)) validateHeaderValue(name, value);
    list.push(name, value);
  }
  return options === undefined ? list : withoutOptions(list, options);
}

/** Cached, because the same few names repeat. */
function kindOf(name: string): NameKind {
  const lower = name.toLowerCase();
  const kind =
    lower === 'connection' ? 'options' : ownedByConnection.has(lower) ? 'owned' : 'passed';
  if (kind === 'passed') validateHeaderName(name);
  if (name.length > maxCachedNameLength) return kind;
  if (kinds.size >= maxCachedNames) kinds.clear();
  kinds.set(name, kind);
  return kind;
}

/** Fields named in the Connection header are hop-by-hop too. */
function withoutOptions(list: readonly string[], options: string): string[] {
  const named = new Set(options.split(',').map((option) => option.trim()));
  return list.filter((_, i) => !named.has(list[i - (i % 2)]!.toLowerCase()));
}
