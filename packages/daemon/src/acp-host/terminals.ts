import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { messageOf } from '@millrace/kit/errors';
import type { CreateTerminalRequest, TerminalExitStatus } from '@agentclientprotocol/sdk';
import type { Workspace } from './workspace.js';

const maxTerminals = 64;
const defaultOutputBytes = 1_048_576;
const maxOutputBytes = 8 * 1_048_576;

interface Terminal {
  child: ChildProcess;
  output: Buffer;
  isTruncated: boolean;
  limit: number;
  exit: TerminalExitStatus | undefined;
  ended: Promise<unknown>;
}

/** Commands that the agent runs through its client, in its workspace. */
export class Terminals {
  readonly #terminals = new Map<string, Terminal>();
  #count = 0;

  constructor(private readonly workspace: Workspace) {}

  async create(request: CreateTerminalRequest): Promise<string> {
    if (this.#terminals.size >= maxTerminals) throw new Error('Too many terminals are open.');
    const { command, args = [], env = [], cwd, outputByteLimit } = request;
    const directory = await this.workspace.inside(cwd ?? this.workspace.root);
    const more = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    // Agents send whole command lines as well as programs with arguments.
    const child = spawn(command, args, {
      cwd: directory,
      env: { ...process.env, ...more },
      shell: args.length === 0,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const limit = Math.min(outputByteLimit ?? defaultOutputBytes, maxOutputBytes);
    const terminal: Terminal = {
      child,
      output: Buffer.alloc(0),
      isTruncated: false,
      limit,
      exit: undefined,
      ended: Promise.resolve(),
    };
    const take = (bytes: Buffer) => append(terminal, bytes);
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.once('exit', (exitCode, signal) => (terminal.exit ??= { exitCode, signal }));
    child.once('error', (error) => {
      take(Buffer.from(`${messageOf(error)}\n`));
      terminal.exit ??= { exitCode: 127, signal: null };
    });
    terminal.ended = Promise.race([once(child, 'close'), once(child, 'error')]).catch(
      () => undefined,
    );
    const id = `t${++this.#count}`;
    this.#terminals.set(id, terminal);
    return id;
  }

  output(id: string) {
    const { output, isTruncated, exit } = this.#find(id);
    return { output: output.toString('utf8'), truncated: isTruncated, exitStatus: exit ?? null };
  }

  async waitForExit(id: string): Promise<TerminalExitStatus> {
    const terminal = this.#find(id);
    await terminal.ended;
    return terminal.exit ?? { exitCode: null, signal: null };
  }

  kill(id: string): void {
    end(this.#find(id));
  }

  release(id: string): void {
    end(this.#find(id));
    this.#terminals.delete(id);
  }

  killAll(): void {
    for (const terminal of this.#terminals.values()) end(terminal);
  }

  #find(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (!terminal) throw new Error(`There is no terminal ${id}.`);
    return terminal;
  }
}

/** Keeps the end of the output, cut between characters. */
function append(terminal: Terminal, bytes: Buffer): void {
  const all = Buffer.concat([terminal.output, bytes]);
  if (all.length <= terminal.limit) {
    terminal.output = all;
    return;
  }
  let start = all.length - terminal.limit;
  while (start < all.length && (all[start]! & 0xc0) === 0x80) start++;
  terminal.output = all.subarray(start);
  terminal.isTruncated = true;
}

/** Ends the command and all its children: it has its own process group. */
function end({ child, exit }: Terminal): void {
  if (exit || child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}
