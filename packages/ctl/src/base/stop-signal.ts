import type { SignalSource } from '@millrace/kit/http';

/**
 * Adapts the end of a command to the signal source of a server. A late listener is notified too,
 * because a server may be stopped while it is still starting.
 */
export function stopSignal(stopped: Promise<void>): SignalSource {
  const listeners = new Set<() => void>();
  return {
    on(signal, listener) {
      if (signal !== 'SIGTERM') return;
      listeners.add(listener);
      void stopped.then(() => {
        if (listeners.delete(listener)) listener();
      });
    },
    removeListener: (_signal, listener) => void listeners.delete(listener),
    // The command handles a second signal itself.
    exit: () => undefined,
  };
}
