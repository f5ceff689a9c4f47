/**
 * Time as a dependency. Everything that reads the time or waits for it takes a `Clock`, so that
 * a simulation can run days in seconds and a test never sleeps.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds from an arbitrary start that never go backwards: for durations. */
  monotonic(): number;
  /** Calls `run` once after `delayMs`. The timer never keeps the process alive by itself. */
  after(delayMs: number, run: () => void): Timer;
  /** Resolves after `delayMs`, or rejects with the signal's reason when it is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

export interface Timer {
  cancel(): void;
}

// setTimeout treats a longer delay as 1 ms, which would turn "in 30 days" into "now".
const maxTimeoutMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => startTimer(delayMs, run),
  sleep: (delayMs, signal) => sleepOn(systemClock, delayMs, signal),
};

/** `sleep` for any clock that has `after`. */
export function sleepOn(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function startTimer(delayMs: number, run: () => void): Timer {
  let handle: NodeJS.Timeout;
  const arm = (leftMs: number) => {
    const stepMs = Math.min(leftMs, maxTimeoutMs);
    handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
    handle.unref();
  };
  if (Number.isNaN(delayMs)) throw new RangeError('A timer needs a delay, not NaN');
  // Node cuts fractions off, which would fire early.
  arm(Math.max(0, Math.ceil(delayMs)));
  return { cancel: () => clearTimeout(handle) };
}
