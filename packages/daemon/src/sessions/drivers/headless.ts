import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readdir, readFile } from 'node:fs/promises';
import { ifThere, messageOf, systemCode } from '@millrace/kit/errors';
import { systemClock, type Clock } from '@millrace/kit/clock';
import type { Driver, KnownAgent, Launch, ProcessView, Started } from './driver.js';
import { OutputLog } from './session-files.js';
import { runProgram } from '../../registry/run-program.js';

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
    const inputFile = join(directory, inputName);
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

/** A process of this machine, as the system reports it. */
export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  args: readonly string[];
}

const isLinux = process.platform === 'linux';

/**
 * The start time of a process, only for comparisons: pids are reused. Undefined when there is no
 * such process, or it is a zombie.
 */
export async function startMarkOf(pid: number): Promise<string | undefined> {
  if (!isLinux) {
    const text = await ps(['-o', 'lstart=,stat=', '-p', String(pid)]);
    const line = text.trim();
    return line === '' || /\sZ\S*$/.test(line) ? undefined : line.replace(/\s+\S+$/, '');
  }
  const stat = await statOf(pid);
  return stat && `${await bootId()}:${stat.startedAt}`;
}

/** Is the process that was there at that start still running? */
export async function isSameProcess(pid: number, mark: string): Promise<boolean> {
  return (await startMarkOf(pid)) === mark;
}

interface Stat {
  parent: number;
  group: number;
  startedAt: string;
}

async function statOf(pid: number): Promise<Stat | undefined> {
  const text = await orGone(readFile(`/proc/${pid}/stat`, 'utf8'));
  if (text === undefined) return undefined;
  // The name is in parentheses and may contain anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group] = fields;
  // A zombie: ended, but not waited for yet.
  if (state === 'Z' || state === 'X') return undefined;
  return { parent: Number(parent), group: Number(group), startedAt: fields[19] ?? '' };
}

let boot: Promise<string> | undefined;

/** Start times count from the start of the machine. */
function bootId(): Promise<string> {
  return (boot ??= readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => '',
  ));
}

/** Every process that this user may see. */
export async function listProcesses(): Promise<ProcessRow[]> {
  if (!isLinux) return rowsOf(await ps(['-A', '-ww', '-o', 'pid=,ppid=,pgid=,command=']));
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const rows = await Promise.all(names.map((name) => rowOf(Number(name))));
  return rows.filter((row) => row !== undefined);
}

async function rowOf(pid: number): Promise<ProcessRow | undefined> {
  const stat = await statOf(pid);
  const line = stat && (await orGone(readFile(`/proc/${pid}/cmdline`, 'utf8')));
  if (!stat || line === undefined) return undefined;
  return { pid, parent: stat.parent, group: stat.group, args: line.split('\0').slice(0, -1) };
}

function rowsOf(text: string): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const line of text.split('\n')) {
    const [, pid, parent, group, command] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined) continue;
    const args = (command ?? '').split(' ');
    rows.push({ pid: Number(pid), parent: Number(parent), group: Number(group), args });
  }
  return rows;
}

async function ps(args: readonly string[]): Promise<string> {
  const end = await runProgram({
    file: '/bin/ps',
    args,
    cwd: '/',
    environment: { LC_ALL: 'C', TZ: 'UTC' },
    timeoutMs: 10_000,
    clock: systemClock,
  });
  return end.kind === 'exited' ? end.stdout : '';
}

async function orGone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(systemCode(error))) return undefined;
    throw error;
  }
}

const graceMs = 5_000;
const stepMs = 40;

/**
 * The background server that all codex programs of a user share. It may be a child of the agent
 * that happened to start it, but other sessions and people use it too.
 */
function isSharedServer({ args }: ProcessRow): boolean {
  return args.some((arg) => /\/app-server-daemon\//.test(arg)) && args.includes('app-server');
}

/**
 * Ends a process with all its descendants, except servers that others use: SIGTERM first, SIGKILL
 * after a while. Resolves when none of them is left. The process leads its own group; its children
 * may have groups too.
 */
export async function endFamily(pid: number, clock: Clock): Promise<void> {
  await endAll(await familyOf(pid), pid, clock);
}

async function endAll(family: Map<number, number>, pid: number, clock: Clock): Promise<void> {
  const until = clock.monotonic() + graceMs;
  signalAll(family, pid, 'SIGTERM');
  while (clock.monotonic() < until) {
    if (!(await areSomeLeft(family))) return;
    await clock.sleep(stepMs);
  }
  // Children started meanwhile are ended too.
  const late = await familyOf(pid);
  const all = new Map([...family, ...late]);
  signalAll(all, pid, 'SIGKILL');
  for (let tries = 0; tries < 50 && (await areSomeLeft(all)); tries++) await clock.sleep(stepMs);
}

/**
 * Ends the rest of the group of a process that has ended. The system does not reuse a pid while its
 * process group still has members.
 */
export async function endLeftovers(pid: number, clock: Clock): Promise<void> {
  const group = (await listProcesses()).filter((row) => row.group === pid && !isSharedServer(row));
  if (group.length === 0 || group.some((row) => row.pid === pid)) return;
  await endAll(new Map(group.map((row) => [row.pid, pid])), pid, clock);
}

/** The groups of a process and of all that descend from it, by the pids of their members. */
async function familyOf(pid: number): Promise<Map<number, number>> {
  const rows = (await listProcesses()).filter((row) => row.pid === pid || !isSharedServer(row));
  const members = new Map<number, number>();
  const wanted = [pid];
  for (let at = 0; at < wanted.length; at++) {
    const current = wanted[at]!;
    for (const row of rows) {
      const belongs = row.pid === current || (row.group === pid && current === pid);
      if (belongs && !members.has(row.pid)) members.set(row.pid, row.group);
      if (row.parent === current && !wanted.includes(row.pid)) wanted.push(row.pid);
    }
  }
  return members;
}

function signalAll(
  family: ReadonlyMap<number, number>,
  leader: number,
  signal: 'SIGTERM' | 'SIGKILL',
): void {
  const groups = new Set<number>();
  for (const [pid, group] of family) {
    // Signal a whole group only if its leader is a descendant; never the group of this process.
    if (group === leader || family.has(group)) groups.add(group);
    else send(pid, signal);
  }
  for (const group of groups) send(-group, signal);
}

function send(target: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    // It has already ended.
    if (!['ESRCH', 'EPERM'].includes(systemCode(error))) throw error;
  }
}

async function areSomeLeft(family: ReadonlyMap<number, number>): Promise<boolean> {
  for (const pid of family.keys()) {
    if ((await startMarkOf(pid)) !== undefined) return true;
  }
  return false;
}

export interface RunScript {
  /** The session's own directory. */
  directory: string;
  file: string;
  args: readonly string[];
  /** Content of stdin, if it is a file in a terminal too. */
  input?: string;
  isPiped?: boolean | undefined;
}

const scriptName = 'run.sh';
const exitName = 'exit';
const inputName = 'input';

/** The script file of a session; with the token it identifies its process. */
export function scriptFile(directory: string): string {
  return join(directory, scriptName);
}

/**
 * Writes the script that runs an agent and records its exit, even when no daemon is running. A
 * file, because prompts and paths are not safe in a shell command, and tmux limits the length of
 * commands. It traps the signals meant for the agent, so it outlives the agent and records its
 * exit.
 */
export function writeRunScript({ directory, file, args, isPiped, input = '' }: RunScript): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  rmSync(join(directory, exitName), { force: true });
  const exit = quoted(join(directory, exitName));
  const inputFile = join(directory, inputName);
  if (isPiped) writeFileSync(inputFile, input, { mode: 0o600 });
  const stdin = isPiped ? ` < ${quoted(inputFile)}` : '';
  const lines = [
    '#!/bin/sh',
    "trap ':' HUP INT QUIT TERM",
    [file, ...args].map(quoted).join(' ') + stdin,
    'code=$?',
    // Only shell builtins: the agent's search path may contain no other program.
    `printf '%s\\n' "$code" > ${exit}`,
    'exit "$code"',
    '',
  ];
  const script = scriptFile(directory);
  writeFileSync(script, lines.join('\n'), { mode: 0o600 });
  return script;
}

/** For a shell: nothing inside single quotes means anything but the quote itself. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The exit code in the file; shells encode a signal as 128 plus its number. */
export function readExit(
  directory: string,
): { code: number | null; signal: string | null } | undefined {
  const text = ifThere(() => readFileSync(join(directory, exitName), 'utf8')) ?? '';
  // Without its end it is still being written.
  if (!/^\d+\n$/.test(text)) return undefined;
  const code = Number(text);
  const signal = signalNames[code - 128];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}

/** Signals whose numbers are the same on all systems. */
export const signalNames: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  13: 'SIGPIPE',
  15: 'SIGTERM',
};
