import { UsageError } from '@millrace/kit/errors';
import { readSessions } from '../agent/find-session.js';
import { readQuestions } from '../agent/questions.js';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import { locate } from '../daemon/locate.js';
import { queueApi } from '../queue/api.js';
import { restUntil } from '../queue/waiting.js';
import type { Flags, Tools } from '../base/tools.js';
import { readSpend } from '../usage/whole-spend.js';
import { Actions, type Servers } from './actions.js';
import type { Closed, ScreenState } from './app.js';
import { followEvents } from './follow-events.js';
import { LiveData, type Readers } from './live-data.js';
import { tabs } from './views.js';

export type TuiFlags = DaemonFlags & Flags<'queueUrl tokenFile'>;

/** Queues have no events, so they are read in turn. */
const queuePauseMs = 2_000;
const maxNotes = 200;

export async function runTui(flags: TuiFlags, tools: Tools): Promise<void> {
  const { terminal } = tools;
  if (!terminal.out.isScreen || !terminal.in.isScreen) {
    throw new UsageError(
      'ctl tui needs a terminal for its input and output. For scripts use `ctl status --json` ' +
        'and `ctl agent list --json`.',
    );
  }
  const stop = new AbortController();
  const signal = AbortSignal.any([tools.lifecycle.interrupted, stop.signal]);
  const here = { ...tools, lifecycle: { ...tools.lifecycle, interrupted: signal } };
  const servers = await serversOf(flags, here);
  // A daemon that is away or refuses us is reported before the screen is taken.
  await readSessions(servers.daemon);
  const live = new LiveData(readersOf(servers));
  const following = followEvents(await locate(flags, terminal.env), live, signal);
  const polling = pollQueues(live, signal);
  const screen = new FullScreen(process);
  try {
    await showUntilQuit({ flags, live, servers, screen }, here);
  } finally {
    screen.close();
    stop.abort();
    await Promise.all([following, polling]);
  }
}

async function serversOf(flags: TuiFlags, tools: Tools): Promise<Servers> {
  const { queueUrl, tokenFile, url: _daemon, data } = flags;
  const queueFlags = {
    ...(queueUrl === undefined ? {} : { url: queueUrl }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(data === undefined ? {} : { data }),
  };
  return {
    daemon: await daemonApi(flags, tools),
    queue: queueApi(queueFlags, tools),
  };
}

function readersOf({ daemon, queue }: Servers): Readers {
  return {
    sessions: () => readSessions(daemon),
    questions: () => readQuestions(daemon, 'open'),
    queues: async () => (await queue.call('listQueues')).body,
    registry: () => daemon.call('listBackends'),
    spend: () => readSpend(daemon),
    notes: async () => (await daemon.call('listInbox', { query: { limit: maxNotes } })).notes,
  };
}

async function pollQueues(live: LiveData, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    live.read('queues');
    await restUntil(queuePauseMs, signal);
  }
}

interface Program {
  readonly flags: TuiFlags;
  readonly live: LiveData;
  readonly servers: Servers;
  readonly screen: FullScreen;
}

async function showUntilQuit(program: Program, tools: Tools): Promise<void> {
  let state: ScreenState = { tab: tabs[0], selected: {}, message: '' };
  for (;;) {
    const closed = await showOnce(program, state, tools);
    state = closed.state;
    if (closed.attach === undefined) return;
    program.screen.leave();
    state = { ...state, message: await attach(closed.attach, program.flags, tools) };
  }
}

async function showOnce(
  { live, servers, screen }: Program,
  start: ScreenState,
  { terminal }: Tools,
): Promise<Closed> {
  const [{ render }, { createElement }, { App }] = await Promise.all([
    import('ink'),
    import('react'),
    import('./app.js'),
  ]);
  let closed: Closed = { state: start };
  screen.enter();
  const app = render(
    createElement(App, {
      live,
      actions: new Actions(servers, live),
      paint: terminal.out.paint,
      start,
      onClose: (now) => (closed = now),
    }),
    { exitOnCtrlC: false, patchConsole: false },
  );
  await app.waitUntilExit();
  return closed;
}

/** Hands the terminal to the agent until the user detaches. */
async function attach(id: string, flags: TuiFlags, tools: Tools): Promise<string> {
  const { attachToAgent } = await import('../agent/attaching.js');
  const { Refusal } = await import('@millrace/kit/errors');
  try {
    // The exit code of tmux is not ours.
    await attachToAgent(id, flags, { ...tools, exitWith: () => undefined });
    return '';
  } catch (error) {
    if (error instanceof Refusal) return error.detail;
    throw error;
  }
}

/** The part of `process` used here. */
export interface ScreenProcess {
  readonly stdout: { write(text: string): unknown };
  readonly stdin: {
    isTTY?: boolean;
    setRawMode?(isRaw: boolean): unknown;
    resume?(): unknown;
    pause?(): unknown;
  };
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  exit(code: number): never;
}

const enterSequence = '\u001B[?1049h\u001B[2J\u001B[H\u001B[?25l';
const leaveSequence = '\u001B[?25h\u001B[?1049l';
const endings = { SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * The alternate screen. Whatever ends the process short of SIGKILL gives the terminal back: its
 * screen, its cursor and its line editing.
 */
export class FullScreen {
  #isOpen = false;
  readonly #listeners: [event: string, listener: () => void][];

  constructor(private readonly self: ScreenProcess) {
    const onSignal = Object.entries(endings).map(([signal, code]): [string, () => void] => [
      signal,
      // The exit event restores the terminal.
      () => self.exit(code),
    ]);
    // Also emitted after an uncaught error, before Node prints it.
    this.#listeners = [['exit', () => this.leave()], ...onSignal];
    for (const [event, listener] of this.#listeners) self.on(event, listener);
  }

  enter(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.self.stdout.write(enterSequence);
  }

  leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { stdin, stdout } = this.self;
    if (stdin.isTTY === true) stdin.setRawMode?.(false);
    // Keys now belong to another program. Only a stream that was resumed stops reading on pause.
    stdin.resume?.();
    stdin.pause?.();
    stdout.write(leaveSequence);
  }

  close(): void {
    this.leave();
    for (const [event, listener] of this.#listeners) this.self.off(event, listener);
  }
}
