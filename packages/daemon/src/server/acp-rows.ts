import { messageOf } from '@millrace/kit/errors';
import type { World } from '@millrace/kit/world';
import type { Backends } from '../registry/backends.js';

/** Programs are run only after this time, because they may take seconds of CPU for their help. */
const delayMs = 10_000;

/**
 * Checks how installed backends support the Agent Client Protocol, soon after the start and in the
 * background. Returns a function that waits for its end.
 */
export function fillAcpRows({
  backends,
  clock,
  log,
}: Pick<World, 'clock' | 'log'> & { backends: Pick<Backends, 'findMissingAcp'> }): {
  close: () => Promise<void>;
} {
  let search = Promise.resolve();
  const timer = clock.after(delayMs, () => {
    search = backends
      .findMissingAcp((backend, error) =>
        log.warn({ backend, reason: messageOf(error) }, 'failed to check for ACP'),
      )
      .catch((error: unknown) => log.warn({ err: error }, 'failed to check for ACP'));
  });
  return {
    close: () => {
      timer.cancel();
      return search;
    },
  };
}
