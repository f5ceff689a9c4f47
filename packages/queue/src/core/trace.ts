import { hash } from 'node:crypto';
import { headerOf } from './forwarded-headers.js';

export interface Trace {
  traceId: string;
  traceparent: string;
  /** True if it continues the trace of the submitter. */
  isContinued: boolean;
}

const traceparentPattern =
  /^(?<version>[0-9a-f]{2})-(?<trace>[0-9a-f]{32})-(?<span>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<rest>-.*)?$/;

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

function readTraceparent(text: string): { traceId: string; flags: string } | undefined {
  const parts = traceparentPattern.exec(text.trim())?.groups;
  if (!parts) return undefined;
  const { version, trace, span, flags, rest } = parts;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(trace!) || /^0+$/.test(span!)) return undefined;
  // Of a later version's flags only "sampled" is defined here.
  const known = version === '00' ? flags! : parseInt(flags!, 16) & 1 ? '01' : '00';
  return { traceId: trace!, flags: known };
}
