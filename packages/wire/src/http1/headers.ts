import { validateHeaderName, validateHeaderValue } from 'node:http';

// Those of RFC 9110 section 7.6.1 and what the connection itself decides: where the request goes
// and where its body ends.
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

/** `owned`: the connection says it itself. `options`: it names others that are not passed on. */
type NameKind = 'passed' | 'owned' | 'options';

const invalidValue = /[^\t\x20-\x7e\x80-\xff]/;
const rememberedNames = 1_000;
const longestRememberedName = 64;
const kinds = new Map<string, NameKind>();

/**
 * The headers that go out, as name and value in turn. Throws a TypeError on one that no HTTP
 * message can carry: whoever made it must have checked it before.
 */
export function outgoingHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  let options: string | undefined;
  for (const name of Object.keys(headers)) {
    const value = headers[name]!;
    const kind = kinds.get(name) ?? kindOf(name);
    if (kind === 'options') options = value.toLowerCase();
    if (kind !== 'passed') continue;
    // Node's own check costs more than the rest of this; it is asked for its error.
    if (typeof value !== 'string' || invalidValue.test(value)) validateHeaderValue(name, value);
    list.push(name, value);
  }
  return options === undefined ? list : withoutOptions(list, options);
}

/** The same few names come over and over. */
function kindOf(name: string): NameKind {
  const lower = name.toLowerCase();
  const kind =
    lower === 'connection' ? 'options' : ownedByConnection.has(lower) ? 'owned' : 'passed';
  if (kind === 'passed') validateHeaderName(name);
  if (name.length > longestRememberedName) return kind;
  if (kinds.size >= rememberedNames) kinds.clear();
  kinds.set(name, kind);
  return kind;
}

/** A Connection header makes every header that it names hop-by-hop too. */
function withoutOptions(list: readonly string[], options: string): string[] {
  const named = new Set(options.split(',').map((option) => option.trim()));
  return list.filter((_, i) => !named.has(list[i - (i % 2)]!.toLowerCase()));
}
