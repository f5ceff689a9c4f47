import { spawn, type ChildProcess } from 'node:child_process';
import type { Clock } from '@millrace/kit/clock';
import { jsonIn, systemCode } from '@millrace/kit/errors';
import { recordOf, type CallLimits } from './adapter.js';

export type AppServerAnswer =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'refused'; readonly code: number | null; readonly message: string }
  | { readonly kind: 'missing' | 'unstartable' | 'aborted' }
  /** The process ended; `hasSpoken` when it wrote lines that are not answers. */
  | { readonly kind: 'ended'; readonly hasSpoken: boolean };

export interface AppServerOptions {
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const maxBufferedChars = 1_048_576;
/** Between SIGTERM and SIGKILL. */
const graceMs = 1_000;
/** Between the exit of the process and the end of its output. */
const lastWordsMs = 100;

/**
 * Sends one request to `codex app-server`: each in its own process, which speaks JSON lines on
 * stdin and stdout and is ended as soon as it has answered.
 */
export class AppServers {
  readonly #running = new Set<AppServer>();

  constructor(private readonly options: AppServerOptions) {}

  async request(program: string, method: string, { signal }: CallLimits): Promise<AppServerAnswer> {
    if (signal.aborted) return { kind: 'aborted' };
    const server = new AppServer(program, method, this.options);
    this.#running.add(server);
    void server.exited.then(() => this.#running.delete(server));
    const abort = () => server.settle({ kind: 'aborted' });
    signal.addEventListener('abort', abort, { once: true });
    const answer = await server.answer;
    signal.removeEventListener('abort', abort);
    return answer;
  }

  async close(): Promise<void> {
    const running = [...this.#running];
    for (const server of running) server.kill();
    await Promise.all(running.map(({ exited }) => exited));
  }
}

class AppServer {
  readonly answer: Promise<AppServerAnswer>;
  /** Resolves when the process is no more. */
  readonly exited: Promise<void>;
  readonly settle: (answer: AppServerAnswer) => void;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  #buffered = '';
  #hasSpoken = false;
  #isSettled = false;
  #isGone = false;

  constructor(
    program: string,
    private readonly method: string,
    { clock, environment }: AppServerOptions,
  ) {
    this.#clock = clock;
    let resolve!: (answer: AppServerAnswer) => void;
    this.answer = new Promise((done) => (resolve = done));
    this.settle = (answer) => {
      if (this.#isSettled) return;
      this.#isSettled = true;
      resolve(answer);
      this.#end();
    };
    // Its own process group, so that its children end with it.
    this.#child = spawn(program, ['app-server'], {
      // No project directory, whose settings would apply.
      cwd: '/',
      env: { ...environment },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    this.exited = new Promise((done) => {
      const finish = () => {
        this.#isGone = true;
        done();
        // Its last lines may still arrive, but its children may keep the pipe open.
        clock.after(lastWordsMs, () => this.settle({ kind: 'ended', hasSpoken: this.#hasSpoken }));
      };
      this.#child.once('exit', finish);
      this.#child.once('error', (error) => {
        this.settle({ kind: systemCode(error) === 'ENOENT' ? 'missing' : 'unstartable' });
        if (this.#child.pid === undefined) finish();
      });
    });
    this.#listen();
    this.#send({ id: initializeId, method: 'initialize', params: { clientInfo } });
  }

  /** At once, with everything it started. */
  kill(): void {
    this.settle({ kind: 'aborted' });
    this.#signal('SIGKILL');
  }

  #listen(): void {
    const { stdin, stdout } = this.#child;
    // The end of the process is noticed by its exit; a broken pipe adds nothing.
    stdin?.on('error', () => undefined);
    stdout?.setEncoding('utf8');
    stdout?.on('data', (text: string) => this.#handleData(text));
    this.#child.once('close', () => this.settle({ kind: 'ended', hasSpoken: this.#hasSpoken }));
  }

  #handleData(text: string): void {
    if (this.#isSettled) return;
    const lines = (this.#buffered + text).split('\n');
    this.#buffered = lines.pop() ?? '';
    for (const line of lines) this.#takeLine(line);
    if (this.#buffered.length > maxBufferedChars) {
      this.settle({ kind: 'ended', hasSpoken: true });
    }
  }

  /** Notifications, requests and other lines that are not answers are ignored. */
  #takeLine(line: string): void {
    if (line.trim() === '') return;
    const message = recordOf(jsonIn(line));
    if (message === null) this.#hasSpoken = true;
    if (message === null || 'method' in message) return;
    const { id } = message;
    if (id !== initializeId && id !== questionId) return;
    const error = recordOf(message['error']);
    if (error) {
      const { code, message: words } = error;
      this.settle({
        kind: 'refused',
        code: typeof code === 'number' ? code : null,
        message: typeof words === 'string' ? words : '',
      });
    } else if (id === initializeId) {
      this.#send({ method: 'initialized' });
      this.#send({ id: questionId, method: this.method });
    } else {
      this.settle({ kind: 'result', result: message['result'] });
    }
  }

  #send(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  #end(): void {
    this.#child.stdin?.end();
    this.#signal('SIGTERM');
    const force = this.#clock.after(graceMs, () => this.#signal('SIGKILL'));
    void this.exited.then(() => {
      force.cancel();
      // Its children may have outlived it and would keep the pipe open.
      this.#signalGroup('SIGKILL');
      this.#child.stdout?.destroy();
    });
  }

  #signal(signal: NodeJS.Signals): void {
    if (!this.#isGone) this.#signalGroup(signal);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // No process is left in the group; macOS reports EPERM.
      if (!['ESRCH', 'EPERM'].includes(systemCode(error))) throw error;
    }
  }
}

const clientInfo = { name: 'millrace', title: 'Millrace', version: '1' };
const initializeId = 1;
const questionId = 2;
