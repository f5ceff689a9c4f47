import { connectionHeaders, namedByConnection } from '@millrace/kit/outbound';

/** Headers that the server sets. */
const ownNames: ReadonlySet<string> = new Set([
  ...connectionHeaders,
  'http2-settings',
  'authorization',
  'cookie',
  'user-agent',
  'traceparent',
]);
const ownPrefixes = ['content-', 'webhook-', 'x-queue-'] as const;

/**
 * Copies the headers of a task that its handler receives into `target`. A submitter cannot set
 * headers of the server, or headers that change routing or framing.
 */
export function forwardHeaders(
  headers: Readonly<Record<string, string>>,
  target: Record<string, string>,
  /** The header that carries the queue's own credentials, in lower case. */
  authName?: string,
): void {
  const connection = headerOf(headers, 'connection');
  const dropped = connection === undefined ? undefined : namedByConnection(connection);
  for (const name of Object.keys(headers)) {
    const lower = name.toLowerCase();
    if (ownNames.has(lower) || lower === authName || dropped?.includes(lower)) continue;
    if (ownPrefixes.some((prefix) => lower.startsWith(prefix))) continue;
    target[name] = headers[name]!;
  }
}

/** The value of a header by its name in lower case, whatever its spelling. */
export function headerOf(
  headers: Readonly<Record<string, string>>,
  lowerName: string,
): string | undefined {
  for (const name of Object.keys(headers)) {
    if (name.length === lowerName.length && name.toLowerCase() === lowerName) return headers[name];
  }
  return undefined;
}
