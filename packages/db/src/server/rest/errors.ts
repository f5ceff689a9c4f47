import { dbErrorDomain, grpcCodes } from '@millrace/contract/db';
import { duration } from '../service/values.js';
import type { CallStatus } from '../base/status.js';
import { durationText } from './durations.js';

const type = (name: string) => `type.googleapis.com/google.rpc.${name}`;

/** The body of an error response: a google.rpc.Status. */
export function statusJson(status: CallStatus): object {
  const { reason, message, metadata, retryAfterMs, violations } = status;
  const details: object[] = [
    {
      '@type': type('ErrorInfo'),
      reason,
      domain: dbErrorDomain,
      ...(Object.keys(metadata).length > 0 && { metadata }),
    },
  ];
  if (retryAfterMs !== undefined) {
    const retryDelay = durationText(duration(retryAfterMs));
    details.push({ '@type': type('RetryInfo'), retry_delay: retryDelay });
  }
  if (violations.length > 0) {
    details.push({
      '@type': type('BadRequest'),
      field_violations: violations.map(({ pointer, message: description }) => ({
        field: pointer,
        description,
      })),
    });
  }
  return { code: grpcCodes[status.code], message, details };
}

/** Headers of an error response. */
export function statusHeaders(status: CallStatus): Record<string, string> {
  const headers: Record<string, string> = {};
  if (status.status === 401) headers['www-authenticate'] = 'Bearer realm="millrace"';
  if (status.retryAfterMs !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(status.retryAfterMs / 1000)));
  }
  return headers;
}
