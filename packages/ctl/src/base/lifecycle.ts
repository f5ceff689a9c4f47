/** How a command learns that it should stop. */
export interface Lifecycle {
  /** Aborted by Ctrl-C. Pass it to child processes, so that none outlives the command. */
  readonly interrupted: AbortSignal;
  /**
   * Ctrl-C waits for `last` before it exits; a second one does not. Returns a function that takes
   * it back.
   */
  readonly onInterrupt: (last: () => Promise<void>) => () => void;
  /**
   * Runs the command as a server: the process stays alive until `work` ends, the first SIGINT or
   * SIGTERM resolves `stopped`, and a second one exits without waiting for the drain. A server
   * started by `ctl up` also stops when `ctl up` exits for any reason.
   */
  readonly serve: (work: (stopped: Promise<void>) => Promise<void>) => Promise<void>;
  /** Runs a program that has the terminal and handles Ctrl-C itself, such as a pager. */
  readonly handOver: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** The part of `process` used here. */
export interface ProcessLike {
  exitCode?: number | string | null | undefined;
  exit(code: number | string): never;
  /** Whether the parent still holds the IPC channel; undefined without one. */
  readonly connected?: boolean;
  on(event: 'SIGINT' | 'SIGTERM' | 'disconnect', listener: () => void): unknown;
  off(event: 'SIGINT' | 'SIGTERM' | 'disconnect', listener: () => void): unknown;
  readonly stdout: Breakable;
  readonly stderr: Breakable;
}

interface Breakable {
  readonly isTTY?: boolean;
  write?(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

const EXIT_INTERRUPTED = 130;

/** Node's maximum timer; it only keeps the event loop alive. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Handles Ctrl-C and closed pipes: `ctl help | head -1` must exit quietly, while a server must keep
 * running when the reader of its output is gone.
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

  let beforeExit: (() => Promise<void>) | undefined;
  const interrupt = (): void => {
    abort.abort();
    // The terminal has echoed ^C, perhaps after a progress line: the prompt gets a line of its own.
    if (self.stderr.isTTY === true) self.stderr.write?.('\n');
    const last = beforeExit;
    beforeExit = undefined;
    if (!last) self.exit(EXIT_INTERRUPTED);
    void last().finally(() => self.exit(EXIT_INTERRUPTED));
  };
  self.on('SIGINT', interrupt);

  return {
    interrupted: abort.signal,
    onInterrupt(last) {
      beforeExit = last;
      return () => {
        if (beforeExit === last) beforeExit = undefined;
      };
    },
    async handOver(work) {
      const ignore = (): void => undefined;
      self.on('SIGINT', ignore);
      self.off('SIGINT', interrupt);
      try {
        return await work();
      } finally {
        self.on('SIGINT', interrupt);
        self.off('SIGINT', ignore);
      }
    },
    async serve(work) {
      serving = true;
      self.off('SIGINT', interrupt);
      const alive = setInterval(() => undefined, LONGEST_TIMER_MS);
      let stopNow = (): void => undefined;
      const stopped = new Promise<void>((resolve) => (stopNow = resolve));
      let isStopping = false;
      const stop = (): void => {
        if (isStopping) interrupt();
        isStopping = true;
        stopNow();
      };
      self.on('SIGINT', stop);
      self.on('SIGTERM', stop);
      // The system closes the channel even if the parent was killed.
      if (self.connected !== undefined) self.on('disconnect', stopNow);
      if (self.connected === false) stopNow();
      try {
        await work(stopped);
      } finally {
        clearInterval(alive);
        // A listener keeps the channel open, and the channel keeps the process alive.
        self.off('disconnect', stopNow);
      }
    },
  };
}
