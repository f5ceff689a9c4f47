import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Part, RunningPart, StartOptions } from './parts.js';

export interface Supervised {
  readonly running: ReadonlyMap<Part, RunningPart>;
  readonly missing: readonly Part[];
  /**
   * Waits until `stopped` resolves or a part ends by itself, then stops all parts, the last
   * started first. Throws when a part failed, or did not stop.
   */
  runUntil(stopped: Promise<void>): Promise<void>;
}

/** Starts the parts that are there, in order. When one cannot start, none is left running. */
export async function startParts(
  parts: readonly Part[],
  options: StartOptions,
): Promise<Supervised> {
  const running = new Map<Part, RunningPart>();
  const missing: Part[] = [];
  for (const part of parts) {
    if (!(await part.available())) {
      missing.push(part);
      continue;
    }
    try {
      running.set(part, await part.start(options));
    } catch (error) {
      throw failed([trouble(part, 'did not start', error), ...(await stopAll(running))]);
    }
  }
  const endings = [...running].map(([part, { ended }]) => unasked(part, ended));
  return {
    running,
    missing,
    async runUntil(stopped) {
      const ending = await Promise.race([stopped, ...endings]);
      const troubles = [...(ending ? [ending] : []), ...(await stopAll(running))];
      if (troubles.length > 0) throw failed(troubles);
    },
  };
}

function unasked(part: Part, ended: Promise<void>): Promise<Error> {
  return ended.then(
    () => new Error(`the ${part.title} ended without being asked to`),
    (error: unknown) => trouble(part, 'failed', error),
  );
}

/** Goes on to the next when one fails to stop; answers with what went wrong. */
async function stopAll(running: ReadonlyMap<Part, RunningPart>): Promise<Error[]> {
  const troubles: Error[] = [];
  for (const [part, live] of [...running].toReversed()) {
    try {
      await live.stop();
    } catch (error) {
      troubles.push(trouble(part, 'did not stop cleanly', error));
    }
  }
  return troubles;
}

function trouble(part: Part, what: string, cause: unknown): Error {
  return new Error(`the ${part.title} ${what}: ${messageOf(cause)}`, { cause });
}

function failed(troubles: readonly Error[]): Refusal {
  return new Refusal('PART_FAILED', troubles.map(messageOf).join('; '), {
    cause: troubles.length === 1 ? troubles[0] : new AggregateError(troubles),
  });
}
