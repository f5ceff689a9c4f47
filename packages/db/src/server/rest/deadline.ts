import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '@millrace/kit/clock';
import { refuse } from '@millrace/engine/value/refusal';
import { callEnded, type CallScope } from '../calls/scope.js';
import { badField } from '../service/values.js';

const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** The deadline from the `Grpc-Timeout` header, in gRPC's format: `250m` is 250 ms. */
export function deadlineOf(headers: IncomingHttpHeaders, clock: Clock): number | undefined {
  const header = headers['grpc-timeout'];
  if (typeof header !== 'string') return undefined;
  const found = /^(\d{1,8})([HMSmun])$/.exec(header);
  return found ? clock.now() + Number(found[1]) * unitMs[found[2]!]! : undefined;
}

export function checkTimeout(headers: IncomingHttpHeaders): void {
  const header = headers['grpc-timeout'];
  if (typeof header === 'string' && !/^\d{1,8}[HMSmun]$/.test(header)) {
    throw badField('Grpc-Timeout', 'must be a number and a unit, such as 250m for 250 ms or 5S');
  }
}

/** The result of the work, or the abort reason when the deadline passes first. */
export async function untilAborted(
  scope: CallScope,
  clock: Clock,
  work: Promise<void>,
): Promise<void> {
  const { signal, deadline } = scope;
  const timer = clock.after(Math.max(0, deadline! - clock.now()), () =>
    scope.abort(refuse('DEADLINE_EXCEEDED', 'The deadline of the call passed.')),
  );
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      // The work aborts its own scope just before it completes.
      if (signal.reason !== callEnded) reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', onAbort!);
    work.catch(() => undefined);
  }
}
