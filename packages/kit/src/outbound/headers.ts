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

/**
 * The headers that go out, as name and value in turn. Throws a TypeError on one that no HTTP
 * message can carry: whoever made it must have checked it before.
 */
export function outgoingHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  let options: string | undefined;
  for (const name of Object.keys(headers)) {
    const value = headers[name]!;
    const lower = name.toLowerCase();
    if (lower === 'connection') options = value.toLowerCase();
    if (ownedByConnection.has(lower)) continue;
    validateHeaderName(name);
    validateHeaderValue(name, value);
    list.push(name, value);
  }
  return options === undefined ? list : withoutOptions(list, options);
}

/** A Connection header makes every header that it names hop-by-hop too. */
function withoutOptions(list: readonly string[], options: string): string[] {
  const named = new Set(options.split(',').map((option) => option.trim()));
  return list.filter((_, i) => !named.has(list[i - (i % 2)]!.toLowerCase()));
}
