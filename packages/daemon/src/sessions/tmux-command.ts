import type { Clock } from '@millrace/kit/clock';
import { findProgram } from '../registry/search-path.js';
import { runProgram } from '../think/program.js';

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
    signal: new AbortController().signal,
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
