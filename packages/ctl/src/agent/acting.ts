import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { confirmed } from '../base/confirming.js';
import type { Tools } from '../base/tools.js';
import { printable } from '../render/text.js';
import { findSession, hasEnded } from './find-session.js';
import { promptOf } from './prompt.js';

type Session = DaemonSchema<'Session'>;

export async function sendToAgent(
  words: string,
  given: string | undefined,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const text = await promptOf(given, 'text', tools.terminal);
  const { api, session } = await found(words, flags, tools);
  const after = await api.call('sendToSession', { path: { id: session.id }, body: { text } });
  show(tools, after, `${nameOf(after)} received it and is ${after.status}.\n`);
}

export async function stopAgent(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const { api, session } = await found(words, flags, tools);
  const after = await api.call('stopSession', { path: { id: session.id } });
  const said = hasEnded(session) ? 'had already ended' : 'was stopped';
  show(tools, after, `${nameOf(after)} ${said} and is ${after.status}.\n`);
}

export async function restartAgent(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const { api, session } = await found(words, flags, tools);
  const after = await api.call('restartSession', { path: { id: session.id } });
  const times = after.restart_count === 1 ? 'once' : `${after.restart_count} times`;
  show(
    tools,
    after,
    `${nameOf(after)} is running again and is ${after.status}; it was restarted ${times}.\n`,
  );
}

export async function serveAgent(words: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const { api, session } = await found(words, flags, tools);
  const server = await api.call('serveSession', { path: { id: session.id } });
  tools.terminal.show(
    server,
    `${printable(session.name)} is served at ${server.url} by \`${printable(server.command)}\`.\n`,
  );
}

export async function removeAgent(
  words: string,
  flags: DaemonFlags & { yes?: boolean },
  tools: Tools,
): Promise<void> {
  const { api, session } = await found(words, flags, tools);
  if (!hasEnded(session) && flags.yes !== true) await confirm(session, tools);
  const gone = await api.call('deleteSession', { path: { id: session.id } });
  show(tools, gone, `Removed ${nameOf(session)}${worktreeText(gone)}.\n`);
}

async function confirm(session: Session, { terminal }: Tools): Promise<void> {
  const state = `${nameOf(session)} is ${session.status}`;
  if (!terminal.in.isScreen) {
    throw new UsageError(`${state}. Not a terminal, so there is nobody to confirm. Add --yes.`);
  }
  if (await confirmed(`${state}. Stop and remove it? [y/N] `, terminal)) return;
  throw new Refusal('CANCELLED', 'Nothing was changed.');
}

function worktreeText({
  worktree,
  worktree_kept: isRetained,
  reason,
}: DaemonSchema<'SessionDeletion'>) {
  if (worktree === null) return '';
  const place = printable(worktree);
  if (!isRetained) return ` and its worktree ${place}`;
  const why = reason === null ? '' : `: ${printable(reason)}`;
  const next = `Delete it with \`git worktree remove --force ${place}\` when you need nothing of it`;
  return `; its worktree ${place} is kept${why}. ${next}`;
}

export async function setCompact(
  words: string,
  state: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const { api, session } = await found(words, flags, tools);
  const now = await api.call('setForceCompact', {
    path: { id: session.id },
    body: { state: state as DaemonSchema<'ForceCompactState'>['state'] },
  });
  const comes = `forced compaction is ${now.effective ? 'on' : 'off'} for it`;
  show(tools, now, `The override of ${nameOf(session)} is ${now.state}: ${comes}.\n`);
}

async function found(
  words: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<{ api: DaemonApi; session: Session }> {
  const api = await daemonApi(flags, tools);
  return { api, session: await findSession(api, words) };
}

function nameOf({ name }: Session): string {
  return printable(name);
}

function show({ terminal }: Tools, answer: object, text: string): void {
  terminal.show(answer, text);
}
