import { messageOf, Refusal } from '@millrace/kit/errors';
import type { SupervisedPart } from './supervised-part.js';

/**
 * Stops senders of work before receivers: a task that the queue delivers while the daemon is
 * stopping would cost an attempt.
 */
const stopOrder = ['connect', 'queue', 'daemon', 'db'];

/**
 * Starts the servers stage by stage; those of one stage do not depend on each other. Returns false
 * if it was stopped before all of them were running. If one cannot start, stops the others and
 * throws the reason.
 */
export async function startParts(
  stages: readonly (readonly SupervisedPart[])[],
  stopped: Promise<void>,
): Promise<boolean> {
  const isStopped = stopped.then(() => true);
  for (const stage of stages) {
    const started = Promise.all(stage.map((part) => part.start())).then(() => false);
    // A start that fails because of a stop is not reported.
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
 * Waits until `stopped` resolves or a server is given up, then stops all servers. Throws if a
 * server was given up or did not stop.
 */
export async function runParts(
  supervised: readonly SupervisedPart[],
  stopped: Promise<void>,
): Promise<void> {
  const ending = await Promise.race([stopped, ...supervised.map(({ givenUp }) => givenUp)]);
  const troubles = [...(ending ? [ending] : []), ...(await stopParts(supervised))];
  if (troubles.length > 0) throw failed(troubles);
}

/** Continues with the next if one fails to stop; returns the errors. */
async function stopParts(supervised: readonly SupervisedPart[]): Promise<Error[]> {
  const inOrder = supervised.toSorted(
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
