import { messageOf, Refusal } from '@millrace/kit/errors';
import type { KeptPart } from './kept-part.js';

/**
 * Those who hand out work stop before those who take it: a task that the queue hands out while the
 * daemon is going down would cost an attempt.
 */
const stopOrder = ['queue', 'daemon', 'db'];

/**
 * Starts the parts, stage by stage: those of one stage need not know one another. False when it was
 * told to stop before all of them ran. When one cannot start, none is left running and the reason
 * is thrown.
 */
export async function startParts(
  stages: readonly (readonly KeptPart[])[],
  stopped: Promise<void>,
): Promise<boolean> {
  const isStopped = stopped.then(() => true);
  for (const stage of stages) {
    const started = Promise.all(stage.map((part) => part.start())).then(() => false);
    // It fails when it is stopped on its way, which is then no news.
    started.catch(() => undefined);
    try {
      if (await Promise.race([started, isStopped])) return false;
    } catch (error) {
      throw failed([error, ...(await stopParts(stages.flat()))]);
    }
  }
  return true;
}

/**
 * Waits until `stopped` resolves or a part is given up, then stops all parts. Throws when a part
 * was given up, or did not stop.
 */
export async function runParts(kept: readonly KeptPart[], stopped: Promise<void>): Promise<void> {
  const ending = await Promise.race([stopped, ...kept.map(({ givenUp }) => givenUp)]);
  const troubles = [...(ending ? [ending] : []), ...(await stopParts(kept))];
  if (troubles.length > 0) throw failed(troubles);
}

/** Goes on to the next when one fails to stop; answers with what went wrong. */
async function stopParts(kept: readonly KeptPart[]): Promise<Error[]> {
  const inOrder = kept.toSorted(
    (a, b) => stopOrder.indexOf(a.part.name) - stopOrder.indexOf(b.part.name),
  );
  const troubles: Error[] = [];
  for (const part of inOrder) {
    const trouble = await part.stop();
    if (trouble) troubles.push(trouble);
  }
  return troubles;
}

function failed(troubles: readonly unknown[]): Refusal {
  const words = troubles.map((trouble) =>
    trouble instanceof Refusal ? trouble.detail : messageOf(trouble),
  );
  return new Refusal('PART_FAILED', words.join('; '), {
    cause: troubles.length === 1 ? troubles[0] : new AggregateError(troubles),
  });
}
