import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { ifThere, jsonIn, messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { fail } from '../core/api.js';
import { isEnded } from '../core/session.js';
import { Turns } from '../core/turns.js';
import { endFamily, isSameProcess, startMarkOf } from './drivers/headless.js';
import { sessionDirectory } from './drivers/session-files.js';
import type { Session, SessionChange } from './port.js';
import type { SessionStore } from './session-store.js';
import {
  ruleTrouble,
  startShell,
  worktreeRulesOf,
  type WorktreeRules,
  type WorktreeSettings,
} from './drivers/worktree-rules.js';

/*
 * The server of a worktree, `serve` of its repository: started on request, with a free port. Its
 * process is known by a file in the session's directory, so the next daemon finds it again.
 */

type SessionServer = DaemonSchema<'SessionServer'>;

interface ServerFile extends SessionServer {
  startMark: string;
}

const fileName = 'serve.json';
const logName = 'serve.log';
/** How long a server may take before it takes connections; it is returned all the same. */
const readyMs = 20_000;
const stepMs = 100;

/** The running server of a session; undefined when there is none. */
async function runningServer(directory: string): Promise<SessionServer | undefined> {
  const file = readServer(directory);
  if (!file || !(await isSameProcess(file.pid, file.startMark))) return undefined;
  const { startMark: _mark, ...server } = file;
  return server;
}

export interface SessionServersParts {
  store: Pick<SessionStore, 'need' | 'get' | 'all'>;
  settings: { readonly values: WorktreeSettings };
  dataDir: string;
  clock: Clock;
  log: Log;
  variablesFor: (backend: string) => Record<string, string>;
  /** Records the server in the session. */
  note: (id: string, serve: SessionServer | null) => Promise<unknown>;
}

/** The servers of all sessions. A server ends with its session. */
export class SessionServers {
  readonly #turns = new Turns();

  constructor(private readonly parts: SessionServersParts) {}

  /** Starts a server that starts by itself, and ends that of a session that has ended. */
  observe({ before, after }: SessionChange): void {
    if (!after || !before) return;
    if (isEnded(after) && !isEnded(before) && after.serve) this.#later(after.id, 'end');
    else if (before.pid === null && after.pid !== null) this.#later(after.id, 'auto');
  }

  /** Forgets servers that ended while no daemon ran. */
  async begin(): Promise<void> {
    for (const { session } of this.parts.store.all()) {
      if (!session.serve || (await runningServer(this.#directory(session.id)))) continue;
      await this.parts.note(session.id, null);
    }
  }

  /** Starts the server of a session, or returns the one that runs. */
  serve(id: string): Promise<SessionServer> {
    return this.#turns.in(id, async () => {
      const { session, rules } = await this.#rules(id);
      const { serve: command } = rules;
      if (command === undefined) {
        const how = 'write `worktree: {serve: COMMAND}` into its .millrace.yaml, or into `repos`';
        throw fail('SESSION_STATE', `The repository of the session has no \`serve\`: ${how}.`);
      }
      const directory = this.#directory(id);
      const running = await runningServer(directory);
      if (running) return running;
      const { clock, variablesFor } = this.parts;
      const environment = { ...variablesFor(''), MILLRACE_AGENT_ID: id };
      const onEnd = () => this.#later(id, 'ended');
      const cwd = session.workdir;
      const made = await startServer({ command, cwd, directory, environment, clock, onEnd });
      if ('failure' in made) {
        throw fail('SESSION_STATE', `The server did not start: ${made.failure}`);
      }
      await this.parts.note(id, made);
      return made;
    });
  }

  async end(id: string): Promise<void> {
    await endServer(this.#directory(id), this.parts.clock);
    if (this.parts.store.get(id)?.session.serve) await this.parts.note(id, null);
  }

  async #rules(id: string): Promise<{ session: Session; rules: WorktreeRules }> {
    const { session, handle } = this.parts.store.need(id);
    const root = handle.worktree?.root ?? session.repo;
    if (root === null) return { session, rules: {} };
    try {
      return { session, rules: await worktreeRulesOf(this.parts.settings.values, root) };
    } catch (error) {
      throw fail('SESSION_STATE', ruleTrouble(error));
    }
  }

  #directory(id: string): string {
    return sessionDirectory(this.parts.dataDir, id);
  }

  #later(id: string, what: 'end' | 'auto' | 'ended'): void {
    const work = async () => {
      if (what === 'end') return this.#turns.in(id, () => this.end(id));
      if (what === 'ended') {
        const isOver = this.parts.store.get(id)?.session.serve && !(await this.#isRunning(id));
        if (isOver) await this.parts.note(id, null);
        return;
      }
      if ((await this.#rules(id)).rules.serve_auto) await this.serve(id);
    };
    work().catch((error: unknown) => {
      this.parts.log.warn({ session: id, reason: messageOf(error) }, 'failed to serve worktree');
    });
  }

  async #isRunning(id: string): Promise<boolean> {
    return (await runningServer(this.#directory(id))) !== undefined;
  }
}

interface ServeParts {
  command: string;
  cwd: string;
  /** The session's own directory. */
  directory: string;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  /** Called when the process has ended by itself. */
  onEnd: () => void;
}

/** Starts a server and waits until it takes connections. */
async function startServer(parts: ServeParts): Promise<SessionServer | { failure: string }> {
  const { command, cwd, directory, clock } = parts;
  const port = await freePort();
  const environment = { ...parts.environment, PORT: String(port) };
  const log = join(directory, logName);
  writeFileSync(log, '', { mode: 0o600 });
  const child = startShell(command, { cwd, environment, log });
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
    parts.onEnd();
  };
  child.once('error', end);
  child.once('exit', end);
  child.unref();
  const { pid } = child;
  const startMark = pid === undefined ? undefined : await startMarkOf(pid);
  if (pid !== undefined && startMark !== undefined) {
    const server = { url: `http://127.0.0.1:${port}/`, port, pid, command };
    const file: ServerFile = { ...server, startMark };
    writeFileSync(join(directory, fileName), JSON.stringify(file), { mode: 0o600 });
    const until = clock.monotonic() + readyMs;
    while (!hasEnded && clock.monotonic() < until && !(await isListening(port))) {
      await clock.sleep(stepMs);
    }
    if (!hasEnded) return server;
  }
  rmSync(join(directory, fileName), { force: true });
  const tail = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-10).join('\n');
  return { failure: `\`${command}\` ended at once${tail === '' ? '' : `: ${tail}`}` };
}

/** Ends the server of a session with all its processes. */
async function endServer(directory: string, clock: Clock): Promise<void> {
  const server = await runningServer(directory);
  if (server) await endFamily(server.pid, clock);
  rmSync(join(directory, fileName), { force: true });
}

function readServer(directory: string): ServerFile | undefined {
  // A file that was being written when the daemon ended is no record.
  const text = ifThere(() => readFileSync(join(directory, fileName), 'utf8')) ?? '';
  return jsonIn(text) as ServerFile | undefined;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
