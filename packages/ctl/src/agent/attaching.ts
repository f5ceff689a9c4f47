import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Refusal, systemCode } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { findSession, hasEnded } from './find-session.js';

/** Hands the terminal to tmux until the user detaches; returns the exit code of tmux. */
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
      `${id} uses the ${driver} driver and has no terminal. Follow its output with \`ctl ` +
        `agent logs -f ${id}\`.`,
    );
  }
  if (hasEnded(session)) {
    throw new Refusal(
      'SESSION_STATE',
      `${id} has ended (${status}). Restart it with \`ctl agent restart ${id}\`.`,
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
  if (!tools.terminal.in.isScreen || !tools.terminal.out.isScreen) {
    throw new Refusal(
      'SESSION_STATE',
      `ctl agent attach needs a terminal. Elsewhere, read its output with \`ctl agent logs ${id}\`.`,
    );
  }
  tools.exitWith(await runTmux(command, tools));
}

/** The daemon runs its own tmux server on a separate socket. */
async function socketOf(dataDir: string): Promise<string> {
  const { tmuxSocket } = await import('@millrace/daemon/config');
  const socket = tmuxSocket(dataDir);
  if (existsSync(socket)) return socket;
  throw new Refusal(
    'UNAVAILABLE',
    `${socket} is not on this machine. Attach on the machine of the daemon.`,
  );
}

async function runTmux(command: readonly string[], { terminal }: Tools): Promise<number> {
  const [program = '', ...args] = command;
  // tmux refuses to nest sessions, but this is a different server.
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
