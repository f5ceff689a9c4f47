import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Refusal, systemCode } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import { findSession } from './finding.js';
import { hasEnded } from './session-words.js';

/** Hands the terminal over to tmux until the person detaches; answers tmux's own exit code. */
export async function attachToAgent(
  words: string,
  flags: DaemonFlags & { readOnly?: boolean },
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const session = await findSession(api, words);
  const { id, driver, status } = session;
  if (driver !== 'tmux') {
    throw new Refusal(
      'SESSION_STATE',
      `${id} runs ${driver}, without a terminal. Read along with \`ctl agent logs -f ${id}\`.`,
    );
  }
  if (hasEnded(session)) {
    throw new Refusal(
      'SESSION_STATE',
      `${id} has ended (${status}). Run it again with \`ctl agent restart ${id}\`.`,
    );
  }
  const view = await api.call('getConfig');
  const socket = await socketOf(view.data_dir);
  const readOnly = flags.readOnly === true ? ['-r'] : [];
  const command = ['tmux', '-S', socket, 'attach-session', ...readOnly, '-t', `=${id}`];
  if (tools.terminal.json) {
    const shown = { id, socket, command };
    tools.terminal.out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  tools.exitWith(await runTmux(command, tools));
}

/** The daemon keeps its tmux apart from the person's own, by a socket of its own. */
async function socketOf(dataDir: string): Promise<string> {
  const { tmuxSocket } = await import('@millrace/daemon/config');
  const socket = tmuxSocket(dataDir);
  if (existsSync(socket)) return socket;
  throw new Refusal(
    'UNAVAILABLE',
    `${socket} is not on this machine: attach where the daemon runs.`,
  );
}

async function runTmux(command: readonly string[], { terminal }: Tools): Promise<number> {
  const [program = '', ...args] = command;
  // Inside another tmux it would refuse; this one is a different server.
  const { TMUX: _inside, ...env } = terminal.env;
  const child = spawn(program, args, { stdio: 'inherit', env });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      const isMissing = systemCode(error) === 'ENOENT';
      const advice = new Refusal('UNAVAILABLE', 'tmux is not installed on this machine.');
      reject(isMissing ? advice : error);
    });
    child.on('exit', (code) => resolve(code ?? 1));
  });
}
