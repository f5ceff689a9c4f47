import { connectionHeaders, namedByConnection } from '@millrace/kit/outbound';
import { readTraceparent } from '@millrace/kit/tracing';
import { hash } from 'node:crypto';

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

export interface Trace {
  traceId: string;
  traceparent: string;
  /** True if it continues the trace of the submitter. */
  isContinued: boolean;
}

/**
 * The W3C trace context of one attempt. It is derived from the task and its lease token, so that
 * another process can compute the same trace id after a crash.
 */
export function traceOf(headers: Readonly<Record<string, string>>, leaseToken: string): Trace {
  const digest = hash('sha256', leaseToken, 'hex');
  const span = digest.slice(32, 48);
  const given = headerOf(headers, 'traceparent');
  const parent = given === undefined ? undefined : readTraceparent(given);
  const traceId = parent?.traceId ?? digest.slice(0, 32);
  const traceparent = `00-${traceId}-${span}-${parent?.flags ?? '01'}`;
  return { traceId, traceparent, isContinued: parent !== undefined };
}
