import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Driver, KnownAgent, Launch, ProcessView, Started } from './driver.js';
import { OutputLog } from './session-files.js';
import { isSameProcess, startMarkOf, readExit, writeRunScript } from './processes.js';

/**
 * Runs an agent in its own process group, with files as stdin, stdout and stderr: it does not
 * depend on this daemon, so it keeps running when the daemon ends, and the next one finds it by its
 * process id and start time.
 */
export class HeadlessDriver implements Driver {
  readonly name = 'headless';
  /** Agents that this process has started. */
  readonly #children = new Set<string>();
  /** How they ended. */
  readonly #ends = new Map<string, { code: number | null; signal: string | null }>();
  readonly #onEnd: () => void;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  async start(launch: Launch): Promise<Started> {
    const { id, directory, token, input, cwd, environment } = launch;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const script = writeRunScript(launch);
    launch.prepare?.();
    const inputFile = join(directory, 'input');
    writeFileSync(inputFile, input, { mode: 0o600 });
    const files = [openSync(inputFile, 'r'), openSync(new OutputLog(directory).path, 'a', 0o600)];
    const [stdin, output] = files as [number, number];
    try {
      const child = spawn('/bin/sh', [script, token], {
        cwd,
        env: { ...environment },
        detached: true,
        stdio: [stdin, output, output],
      });
      this.#ends.delete(id);
      this.#children.add(id);
      const failed = new Promise<Started>((resolve) => {
        child.once('error', (error) => resolve({ failure: startFailure(error) }));
      });
      child.once('exit', (code, signal) => {
        this.#ends.set(id, { code, signal });
        this.#onEnd();
      });
      child.unref();
      if (child.pid === undefined) {
        this.#children.delete(id);
        return await failed;
      }
      // A process that has ended has no start time; only its pid is returned.
      return { pid: child.pid, startMark: (await startMarkOf(child.pid)) ?? 'ended' };
    } catch (error) {
      return { failure: startFailure(error) };
    } finally {
      for (const file of files) closeSync(file);
    }
  }

  async inspect(agents: readonly KnownAgent[]): Promise<Map<string, ProcessView>> {
    const views = await Promise.all(
      agents.map(async (agent) => [agent.id, await this.#inspectOne(agent)] as const),
    );
    return new Map(views);
  }

  release(id: string): Promise<void> {
    this.#ends.delete(id);
    this.#children.delete(id);
    return Promise.resolve();
  }

  async #isRunning(id: string, pid: number, startMark: string | null): Promise<boolean> {
    // For its own children this process gets exit events.
    if (this.#children.has(id)) return !this.#ends.has(id);
    return startMark !== null && isSameProcess(pid, startMark);
  }

  async #inspectOne({ id, directory, pid, startMark }: KnownAgent): Promise<ProcessView> {
    if (pid !== null && (await this.#isRunning(id, pid, startMark)))
      return { pid, exit: undefined };
    // Written before the script ends, so a missing record will never appear.
    return { pid: undefined, exit: readExit(directory) ?? this.#ends.get(id) };
  }
}

function startFailure(error: unknown): string {
  switch (systemCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'the directory to work in is gone';
    case 'EAGAIN':
      return 'this machine can start no more processes';
    default:
      return `it could not be started: ${messageOf(error)}`;
  }
}
