import type { SignalSource } from '@millrace/kit/http';

/**
 * The end of a command as the signal that a server waits for. Whoever begins to listen later hears
 * of it too: a server may be told to stop while it is still starting.
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
    // The second signal is the command's own affair.
    exit: () => undefined,
  };
}
