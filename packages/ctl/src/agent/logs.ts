import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { wholeNumber } from '../base/arguments.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { printableLines } from '../render/text.js';
import type { Terminal } from '../base/terminal.js';
import { findSession, hasEnded } from './find-session.js';

type Session = DaemonSchema<'Session'>;
type Output = DaemonSchema<'SessionOutput'>;

export type LogsFlags = DaemonFlags & Flags<'lines', 'follow'>;

const defaultLines = 100;
const maxLines = 5_000;
const pollMs = 400;

/** Prints the end of an agent's output; with --follow, new output too. */
export async function showLogs(words: string, flags: LogsFlags, tools: Tools): Promise<void> {
  const limit = wholeNumber(flags.lines, '--lines') ?? defaultLines;
  if (limit < 1 || limit > maxLines) {
    throw new UsageError(`--lines must be 1 to ${maxLines}, not ${limit}.`);
  }
  const api = await daemonApi(flags, tools);
  const session = await findSession(api, words);
  const tail = await readOutput(api, session, { limit });
  const { terminal } = tools;
  if (!flags.follow) {
    if (terminal.json) terminal.out.write(`${JSON.stringify(tail, null, 2)}\n`);
    else writeLines(tail.lines, terminal);
    return;
  }
  writePiece(tail, terminal);
  await follow(api, session, tail.next, tools);
}

/** Follows the output until the agent has ended or Ctrl-C. */
async function follow(api: DaemonApi, session: Session, from: number, tools: Tools): Promise<void> {
  let next = from;
  for (;;) {
    // Read the status before the output, so that no output written before the end is missed.
    const isOver = await endedOrGone(api, session);
    if (isOver === 'gone') return;
    for (let isMore = true; isMore;) {
      const piece = await readOutput(api, session, { limit: maxLines, after: next });
      writePiece(piece, tools.terminal);
      await tools.terminal.out.drained();
      isMore = piece.lines.length > 0 && piece.next > next;
      next = piece.next;
    }
    if (isOver === 'ended') return;
    await rest(pollMs, tools.lifecycle.interrupted);
  }
}

async function endedOrGone(
  api: DaemonApi,
  session: Session,
): Promise<'running' | 'ended' | 'gone'> {
  try {
    const now = await api.call('getSession', { path: { id: session.id } });
    return hasEnded(now) ? 'ended' : 'running';
  } catch (error) {
    if (error instanceof Refusal && error.code === 'SESSION_NOT_FOUND') return 'gone';
    throw error;
  }
}

export async function readOutput(
  api: DaemonApi,
  session: Pick<Session, 'id'>,
  { limit, after }: { limit: number; after?: number },
): Promise<Output> {
  const query = { limit, ...(after === undefined ? {} : { after }) };
  return api.call('getSessionOutput', { path: { id: session.id }, query });
}

function writePiece(piece: Output, terminal: Terminal): void {
  if (!terminal.json) writeLines(piece.lines, terminal);
  else if (piece.lines.length > 0) terminal.out.write(`${JSON.stringify(piece)}\n`);
}

function writeLines(lines: readonly string[], { out }: Terminal): void {
  if (lines.length > 0) out.write(lines.map((line) => `${printableLines(line)}\n`).join(''));
}
