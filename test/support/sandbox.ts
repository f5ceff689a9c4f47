import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { ctlHere } from '../../packages/ctl/test/run-ctl.js';
import { installFakeAgent } from '../../packages/daemon/test/support/fake-agent.js';
import { argumentsOf } from './command-words.js';
import { root } from './markdown.js';
import { patient, processes } from './up.js';

export interface Outcome {
  code: number | null;
  out: string;
}

interface RunOptions {
  /** Where it runs; the small project of the sandbox unless told. */
  at?: string;
  /** Runs it on a terminal, and types each of these once its text has been seen. */
  typed?: readonly { after: RegExp; keys: string }[];
  /** Ends it by Ctrl-C once this has been said. */
  until?: RegExp;
}

/** Why agents have no terminals here; undefined where they have. */
export const noTmux = spawnSync('tmux', ['-V']).status === 0 ? undefined : 'tmux is not installed';

const limitMs = 170_000;
const anyPort = '127.0.0.1:0';
/** What comes faster than a person types is a paste to tmux, and no command. */
const keyPauseMs = 40;

/**
 * A home of its own with a fake agent and `millrace` on the PATH, and a small project with `bin/ctl`,
 * so that commands run as pages write them. Servers take any free port and leave their addresses in the home.
 */
export class Sandbox {
  readonly home = mkdtempSync(join(tmpdir(), 'millrace-docs-'));
  readonly work = join(this.home, 'mill');
  readonly env: Record<string, string>;
  readonly #servers = new Map<string, Running>();

  private constructor() {
    const path = [join(this.home, 'bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin'];
    this.env = {
      PATH: [...path, '/bin'].join(':'),
      HOME: this.home,
      TERM: 'xterm',
      MILLRACE_LOG: 'warn',
      MILLRACE_LISTEN: anyPort,
      MILLRACE_QUEUE_LISTEN: anyPort,
      MILLRACE_QUEUE_METRICS_LISTEN: anyPort,
      MILLRACE_DB_GRPC: anyPort,
      MILLRACE_DB_HTTP: anyPort,
    };
  }

  static async make(): Promise<Sandbox> {
    const sandbox = new Sandbox();
    const { home, work } = sandbox;
    mkdirSync(join(home, 'bin'));
    await installFakeAgent(join(home, 'bin'), ['claude']);
    mkdirSync(join(work, 'bin'), { recursive: true });
    symlinkSync(join(root, 'bin', 'ctl'), join(work, 'bin', 'ctl'));
    symlinkSync(join(root, 'bin', 'ctl'), join(home, 'bin', 'millrace'));
    writeFileSync(
      join(work, 'package.json'),
      '{ "name": "mill", "private": true, "scripts": { "test": "node --version" } }\n',
    );
    const git = (...args: string[]) => execFileSync('git', args, { cwd: work, env: sandbox.env });
    git('init', '--quiet', '--initial-branch', 'main');
    git('config', 'user.name', 'Ada');
    git('config', 'user.email', 'ada@example.org');
    git('add', 'package.json');
    git('commit', '--quiet', '--message', 'Begin');
    return sandbox;
  }

  /** As `run`, without a process where the command needs none: starting one takes 0.3 s. */
  async runHere(command: string): Promise<Outcome> {
    const args = argumentsOf(command);
    if (!args) return this.run(command);
    const { code, out, err } = await ctlHere(args, this.env, { cwd: this.work });
    return { code, out: out + err };
  }

  async run(command: string, options: RunOptions = {}): Promise<Outcome> {
    const running = new Running(command, this.env, options.at ?? this.work, !!options.typed);
    const limit = setTimeout(() => running.kill('SIGKILL'), limitMs);
    try {
      for (const { after, keys } of options.typed ?? []) {
        await running.says(after);
        for (const key of keys) {
          running.type(key);
          await sleep(keyPauseMs);
        }
      }
      if (options.until) {
        await running.says(options.until);
        running.kill('SIGINT');
      }
      return await running.ended;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Starts a server; one of the same name is ended first, as somebody at its terminal would. */
  async serve(name: string, command: string, ready: RegExp, at = this.work): Promise<string> {
    await this.stop(name);
    const running = new Running(command, this.env, at);
    this.#servers.set(name, running);
    await running.says(ready);
    return running.out;
  }

  async stop(name: string): Promise<void> {
    const running = this.#servers.get(name);
    this.#servers.delete(name);
    running?.kill('SIGINT');
    const ended = await running?.ended;
    expect(ended?.code ?? 0, ended?.out).toBe(0);
  }

  async end(): Promise<void> {
    for (const name of [...this.#servers.keys()].toReversed()) await this.stop(name);
    const left = () => processes().filter(({ line }) => line.includes(this.home));
    await vi.waitFor(() => expect(left()).toEqual([]), patient);
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** A command in a process group of its own, as a shell gives it. */
class Running {
  out = '';
  readonly ended: Promise<Outcome>;
  readonly #child: ChildProcess;
  #received: () => void = () => undefined;

  constructor(
    private readonly command: string,
    env: Record<string, string>,
    cwd: string,
    onTerminal = false,
  ) {
    const [program, ...args] = onTerminal ? terminalFor(command) : ['sh', '-c', `exec ${command}`];
    const child = spawn(program!, args, { cwd, env, detached: true });
    this.#child = child;
    const receive = (text: string) => {
      this.out += text;
      this.#received();
    };
    child.stdout.setEncoding('utf8').on('data', receive);
    child.stderr.setEncoding('utf8').on('data', receive);
    if (!onTerminal) child.stdin.end();
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, out: this.out }));
    });
  }

  says(pattern: RegExp): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#received = () => pattern.test(this.out) && resolve();
      this.#received();
      const missed = () => reject(new Error(`${this.command} did not say ${pattern}: ${this.out}`));
      setTimeout(missed, patient.timeout).unref();
      this.ended.then(missed, reject);
    });
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  kill(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid!, signal);
    } catch (error) {
      // It has ended by itself.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Everybody has `script`, with arguments in two orders. */
function terminalFor(command: string): string[] {
  return process.platform === 'linux'
    ? ['script', '--quiet', '--return', '--command', command, '/dev/null']
    : ['script', '-q', '/dev/null', 'sh', '-c', command];
}
