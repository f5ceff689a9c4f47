/** How a command learns that it should end. */
export interface Lifecycle {
  /** Aborted by Ctrl-C: hand it to child processes, so that none outlives its command. */
  readonly interrupted: AbortSignal;
  /**
   * Runs the command as a server: the process stays alive while `work` does, the first SIGINT or
   * SIGTERM resolves `stopped`, and a second one ends the process without waiting for the drain.
   */
  readonly serve: (work: (stopped: Promise<void>) => Promise<void>) => Promise<void>;
}

/** The part of `process` that matters here. */
export interface ProcessLike {
  exitCode?: number | string | null | undefined;
  exit(code: number | string): never;
  on(event: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  off(event: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  readonly stdout: Breakable;
  readonly stderr: Breakable;
}

interface Breakable {
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

const EXIT_INTERRUPTED = 130;

/** Node's longest timer; it only keeps the event loop alive. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Takes charge of Ctrl-C and of readers that go away: `ctl help | head -1` must end quietly,
 * while a server must outlive whoever was reading its banner.
 */
export function takeOverProcess(self: ProcessLike): Lifecycle {
  const abort = new AbortController();
  let serving = false;

  const onBrokenPipe = (error: NodeJS.ErrnoException): void => {
    if (error.code !== 'EPIPE') throw error;
    if (!serving) self.exit(self.exitCode ?? 0);
  };
  self.stdout.on('error', onBrokenPipe);
  self.stderr.on('error', onBrokenPipe);

  const interrupt = (): void => {
    abort.abort();
    self.exit(EXIT_INTERRUPTED);
  };
  self.on('SIGINT', interrupt);

  return {
    interrupted: abort.signal,
    async serve(work) {
      serving = true;
      self.off('SIGINT', interrupt);
      const alive = setInterval(() => undefined, LONGEST_TIMER_MS);
      const stopped = new Promise<void>((resolve) => {
        let asked = false;
        const stop = (): void => {
          if (asked) interrupt();
          asked = true;
          resolve();
        };
        self.on('SIGINT', stop);
        self.on('SIGTERM', stop);
      });
      try {
        await work(stopped);
      } finally {
        clearInterval(alive);
      }
    },
  };
}
