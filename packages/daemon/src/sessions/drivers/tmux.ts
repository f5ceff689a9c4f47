import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { fail } from '../../core/api.js';
import { Turns } from '../../core/turns.js';
import type { KnownAgent, Launch, ProcessView, Started, TalkingDriver } from './driver.js';
import { OutputLog, sessionsDirectory, tmuxSocket } from './session-files.js';
import {
  isSameProcess,
  quoted,
  readExit,
  signalNames,
  startMarkOf,
  writeRunScript,
} from './headless.js';
import { findProgram } from '../../registry/programs.js';
import { runProgram } from '../../registry/run-program.js';

/** Fixed, so that a screen has the same layout for every viewer. */
const columns = 160;
const rows = 50;
/** How long tmux may take to report how a program ended. */
const patienceMs = 2_000;

/** A pane stays and shows how its agent ended. */
const config = `set -g remain-on-exit on
set -g history-limit 20000
set -g status off
set -g default-terminal 'screen-256color'
set -s escape-time 0
set -s exit-empty on
`;

/**
 * Runs agents in a tmux server of the daemon's own, one session each, which outlives the daemon.
 * People can attach to it.
 */
export class TmuxDriver implements TalkingDriver {
  readonly name = 'tmux';
  readonly #tmux: TmuxParts;
  readonly #starts = new Turns();
  readonly #deadSince = new Map<string, number>();

  constructor(parts: {
    clock: Clock;
    environment: Readonly<Record<string, string | undefined>>;
    dataDir: string;
  }) {
    const { clock, environment, dataDir } = parts;
    const socket = tmuxSocket(dataDir);
    const configFile = join(sessionsDirectory(dataDir), 'tmux.conf');
    this.#tmux = { clock, environment, socket, configFile };
  }

  start(launch: Launch): Promise<Started> {
    // One after the other: the first one starts the server.
    return this.#starts.in('', () => this.#start(launch));
  }

  async #start(launch: Launch): Promise<Started> {
    const { id, directory, token, cwd, environment: env } = launch;
    const { socket, configFile } = this.#tmux;
    const trouble = privateSocketFolder(dirname(socket));
    if (trouble !== undefined) return { failure: trouble };
    writeFileSync(configFile, config, { mode: 0o600 });
    await this.release(id);
    const script = writeRunScript(launch);
    const log = new OutputLog(directory).path;
    writeFileSync(log, '', { flag: 'a', mode: 0o600 });
    // tmux copies the listed variables from the client to a new session, and unsets listed ones
    // that the client lacks: those of the agent that started the server.
    const names = namesIn({ ...this.#tmux.environment, ...env });
    const list = ['set-option', '-g', 'update-environment', names];
    const size = ['-x', String(columns), '-y', String(rows)];
    const print = ['-P', '-F', '#{pane_pid}'];
    const make = ['new-session', '-d', '-s', id, ...size, '-c', plain(cwd), ...print];
    const pipe = ['pipe-pane', '-t', paneOf(id), plain(`exec cat >> ${quoted(log)}`)];
    const made = await tmux(
      this.#tmux,
      [...list, ';', ...make, '/bin/sh', script, token, ';', ...pipe],
      { env },
    );
    const pid = Number(made.stdout.trim());
    if (!made.isOk || !Number.isInteger(pid) || pid < 1) {
      return { failure: `tmux could not start it: ${made.trouble || 'it said nothing'}` };
    }
    return { pid, startMark: (await startMarkOf(pid)) ?? 'ended' };
  }

  async inspect(agents: readonly KnownAgent[]): Promise<Map<string, ProcessView>> {
    const panes = await this.#panes();
    // When tmux does not answer, the state is unknown, which does not mean that the agents ended.
    if (!panes) return new Map();
    const views = agents.map(async (agent): Promise<[string, ProcessView]> => {
      const { id, directory, pid, startMark } = agent;
      const pane = panes.get(id);
      if (pane && !pane.isDead) return [id, { pid: pane.pid, exit: undefined }];
      const exit = readExit(directory) ?? pane?.exit;
      // A pane is dead shortly before tmux knows how its program ended.
      if (pane && !exit && this.#isFresh(id)) return [id, { pid: pane.pid, exit }];
      // On a busy machine a client may not reach the server; the process itself decides.
      const isAlive = !pane && !exit && pid && startMark && (await isSameProcess(pid, startMark));
      return [id, { pid: isAlive ? pid : undefined, exit }];
    });
    return new Map(await Promise.all(views));
  }

  #isFresh(id: string): boolean {
    const now = this.#tmux.clock.monotonic();
    const since = this.#deadSince.get(id) ?? now;
    this.#deadSince.set(id, since);
    return now - since < patienceMs;
  }

  async agents(): Promise<string[]> {
    return [...((await this.#panes()) ?? new Map<string, Pane>()).keys()];
  }

  async release(id: string): Promise<void> {
    this.#deadSince.delete(id);
    if (!existsSync(this.#tmux.socket)) return;
    expectNothingWorse(await tmux(this.#tmux, ['kill-session', '-t', `=${id}`]));
  }

  async screen(id: string): Promise<string | undefined> {
    const shown = await tmux(this.#tmux, ['capture-pane', '-p', '-J', '-t', paneOf(id)]);
    return shown.isOk ? shown.stdout : undefined;
  }

  /** The content of the screen, with SGR sequences for colours. */
  async colours(id: string): Promise<string | undefined> {
    const shown = await tmux(this.#tmux, ['capture-pane', '-p', '-e', '-t', paneOf(id)]);
    return shown.isOk ? shown.stdout : undefined;
  }

  /** The content of the screen and its scrollback. */
  async history(id: string): Promise<string | undefined> {
    const args = ['capture-pane', '-p', '-J', '-S', '-', '-t', paneOf(id)];
    const shown = await tmux(this.#tmux, args);
    return shown.isOk ? shown.stdout : undefined;
  }

  async paste(id: string, text: string): Promise<void> {
    const buffer = `millrace-${id}`;
    const loaded = await tmux(this.#tmux, ['load-buffer', '-b', buffer, '-'], { input: text });
    if (!loaded.isOk) throw new Error(`tmux took no text: ${loaded.trouble}`);
    // As a bracketed paste for programs that support it, with its line breaks unchanged.
    const paste = `paste-buffer -d -p -r -b ${buffer} -t ${paneOf(id)}`;
    // A paste into a pane whose program has ended crashes tmux 3.3, and with it every agent.
    const refuse = `delete-buffer -b ${buffer} ; display-message -p ended`;
    const args = ['if-shell', '-F', '-t', paneOf(id), '#{pane_dead}', refuse, paste];
    const pasted = await tmux(this.#tmux, args);
    if (!pasted.isOk) throw new Error(`tmux could not paste: ${pasted.trouble}`);
    if (pasted.stdout !== '') throw fail('SESSION_STATE', 'The agent has just ended.');
  }

  async type(id: string, text: string): Promise<void> {
    const typed = await tmux(this.#tmux, ['send-keys', '-l', '-t', paneOf(id), '--', text]);
    if (!typed.isOk) throw new Error(`tmux could not type: ${typed.trouble}`);
  }

  async press(id: string, key: string): Promise<void> {
    const pressed = await tmux(this.#tmux, ['send-keys', '-t', paneOf(id), '--', key]);
    if (!pressed.isOk) throw new Error(`tmux could not press ${key}: ${pressed.trouble}`);
  }

  /** Removes the socket when no server listens on it. */
  async tidy(): Promise<void> {
    if (!existsSync(this.#tmux.socket)) return;
    const listed = await tmux(this.#tmux, ['list-sessions']);
    if (!isNothingThere(listed)) return;
    rmSync(this.#tmux.socket, { force: true });
    // Outside of the data directory it has its own directory, which others may use, too.
    if (dirname(this.#tmux.socket) !== dirname(this.#tmux.configFile)) {
      await rmdir(dirname(this.#tmux.socket)).catch(() => undefined);
    }
  }

  async #panes(): Promise<Map<string, Pane> | undefined> {
    if (!existsSync(this.#tmux.socket)) return new Map();
    const format = [
      '#{session_name}',
      '#{pane_pid}',
      '#{pane_dead}',
      '#{pane_dead_status}',
      '#{pane_dead_signal}',
    ].join('\t');
    const listed = await tmux(this.#tmux, ['list-panes', '-a', '-F', format]);
    if (isNothingThere(listed)) return new Map();
    if (!listed.isOk) return undefined;
    const lines = listed.stdout.split('\n').filter((line) => line !== '');
    return new Map(lines.map(paneIn));
  }
}

interface Pane {
  pid: number;
  isDead: boolean;
  exit: ProcessView['exit'];
}

function paneIn(line: string): [string, Pane] {
  const [id = '', pid, dead, status = '', signal = ''] = line.split('\t');
  const code = /^\d+$/.test(status) ? Number(status) : null;
  const named = /^\d+$/.test(signal) ? (signalNames[Number(signal)] ?? `signal ${signal}`) : null;
  const exit = code === null && named === null ? undefined : { code, signal: named };
  return [id, { pid: Number(pid), isDead: dead === '1', exit }];
}

function namesIn(environment: Launch['environment']): string {
  return Object.keys(environment)
    .filter((name) => /^[A-Za-z_]\w*$/.test(name))
    .join(' ');
}

/** The pane of exactly this session. */
function paneOf(id: string): string {
  return `=${id}:`;
}

/** tmux treats `#` as the start of a format, and a final `;` as the end of a command. */
function plain(text: string): string {
  return text.replaceAll('#', '##').replace(/;$/, '\\;');
}

function expectNothingWorse(end: TmuxEnd): void {
  if (!end.isOk && !isNothingThere(end)) throw new Error(`tmux: ${end.trouble}`);
}

/** A directory that only its owner can write: access to the socket allows typing into agents. */
function privateSocketFolder(folder: string): string | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const facts = lstatSync(folder);
  if (!facts.isDirectory() || facts.uid !== process.geteuid?.()) {
    return `the directory ${folder} for the socket of tmux is not ours`;
  }
  chmodSync(folder, 0o700);
  return undefined;
}

export interface TmuxParts {
  clock: Clock;
  /** Its PATH is searched for tmux. */
  environment: Readonly<Record<string, string | undefined>>;
  socket: string;
  /** The configuration that the server reads at start. */
  configFile: string;
}

export interface TmuxEnd {
  isOk: boolean;
  stdout: string;
  trouble: string;
}

const timeoutMs = 10_000;

/**
 * Runs tmux on the daemon's own socket. The environment is that of the new session: tmux copies it
 * from the client.
 */
export async function tmux(
  { clock, environment, socket, configFile }: TmuxParts,
  args: readonly string[],
  { env = environment, input = '' }: { env?: TmuxParts['environment']; input?: string } = {},
): Promise<TmuxEnd> {
  const file = await findProgram('tmux', environment['PATH']);
  if (file === undefined) return { isOk: false, stdout: '', trouble: 'tmux is not installed' };
  const { TMUX: _outer, TMUX_PANE: _pane, ...rest } = env;
  const end = await runProgram({
    file,
    // The terminal is UTF-8 whatever the locale of the daemon says.
    args: ['-u', '-S', socket, '-f', configFile, ...args],
    input,
    cwd: '/',
    environment: rest,
    timeoutMs,
    clock,
  });
  if (end.kind === 'exited') {
    return { isOk: end.code === 0, stdout: end.stdout, trouble: end.stderr.trim() };
  }
  const trouble = end.kind === 'not_started' ? end.reason : `tmux did not answer (${end.kind})`;
  return { isOk: false, stdout: '', trouble };
}

/** No server, or no session of that name: there is nothing, which is no failure. */
export function isNothingThere({ isOk, trouble }: TmuxEnd): boolean {
  return (
    !isOk &&
    /no server running|error connecting|can't find (?:session|pane|window)|no sessions|server exited|lost server/i.test(
      trouble,
    )
  );
}
