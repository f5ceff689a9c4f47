import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { findProgram } from '../registry/programs.js';
import { runProgram } from '../registry/run-program.js';
import type { Alert } from './alert-store.js';

export interface DesktopParts {
  clock: Clock;
  log: Log;
  environment: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** Default: that of this machine. */
  platform?: NodeJS.Platform;
}

const limitMs = 5_000;
/** Maximum number of queued notifications; the inbox has every alert. */
const maxQueued = 20;

/** Shows desktop notifications one after the other. Failures are logged. */
export class Desktop {
  readonly #stop = new AbortController();
  #waiting = 0;
  #queue: Promise<void> = Promise.resolve();
  #logged = new Set<string>();

  constructor(private readonly parts: DesktopParts) {}

  show(alert: Alert): void {
    if (this.#waiting >= maxQueued) return;
    this.#waiting++;
    this.#queue = this.#queue.then(async () => {
      try {
        if (!this.#stop.signal.aborted) await this.#run(alert);
      } catch (error) {
        this.#logOnce(`a desktop notification could not be shown: ${String(error)}`);
      } finally {
        this.#waiting--;
      }
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#queue;
  }

  async #run(alert: Alert): Promise<void> {
    const { clock, environment, cwd, platform = process.platform } = this.parts;
    const { program, args } = platform === 'darwin' ? osascript(alert) : notifySend(alert);
    const file = await findProgram(program, environment['PATH']);
    if (file === undefined) {
      return this.#logOnce(`there is no ${program} on the search path: no desktop notifications`);
    }
    const { signal } = this.#stop;
    const run = { file, args, cwd, environment, timeoutMs: limitMs, signal, clock };
    const end = await runProgram(run);
    if (end.kind === 'aborted' || (end.kind === 'exited' && end.code === 0)) return;
    if (end.kind === 'not_started') return this.#logOnce(`${program}: ${end.reason}`);
    if (end.kind !== 'exited') return this.#logOnce(`${program} took longer than ${limitMs} ms`);
    this.#logOnce(`${program} failed: ${end.stderr.trim().slice(0, 200) || `exit ${end.code}`}`);
  }

  /** Logs each reason once: a machine without a display fails the same way every time. */
  #logOnce(reason: string): void {
    if (this.#logged.has(reason) || this.#logged.size > 20) return;
    this.#logged.add(reason);
    this.parts.log.warn({}, reason);
  }
}

const urgencies = { info: 'low', warning: 'normal', critical: 'critical' } as const;

function notifySend({ severity, title, body }: Alert) {
  const options = ['--app-name=Millrace', `--urgency=${urgencies[severity]}`];
  // After the dashes nothing is an option; the body is parsed as markup.
  return { program: 'notify-send', args: [...options, '--', title, escaped(body)] };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function osascript({ title, body }: Alert) {
  const script = [
    'on run argv',
    'display notification (item 3 of argv) with title (item 1 of argv) subtitle (item 2 of argv)',
    'end run',
  ];
  // The texts are arguments of the script, never part of it. The first one ends the options.
  const lines = script.flatMap((line) => ['-e', line]);
  return { program: 'osascript', args: [...lines, 'Millrace', title, body] };
}
