import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { printable } from '../render/text.js';
import { diffText, statText, summaryText } from './diff-text.js';
import { findSession } from './find-session.js';

export interface BaseFlags extends DaemonFlags {
  base?: string;
}
export interface DiffFlags extends BaseFlags {
  stat?: boolean;
}
export interface CommitFlags extends DaemonFlags {
  message?: string;
  force?: boolean;
}
export interface PushFlags extends DaemonFlags {
  remote?: string;
  force?: boolean;
}
export interface OpenPrFlags extends BaseFlags {
  title?: string;
  body?: string;
  draft?: boolean;
}
export interface MergeFlags extends BaseFlags {
  strategy?: DaemonSchema<'MergeStrategy'>;
  message?: string;
  force?: boolean;
}
export interface RebaseFlags extends BaseFlags {
  force?: boolean;
}

export async function showDiff(words: string, flags: DiffFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { base, stat } = flags;
  const diff = await api.call('getSessionDiff', { path, ...(base && { query: { base } }) });
  const { out, err, json } = tools.terminal;
  if (json) return out.write(`${JSON.stringify(diff, null, 2)}\n`);
  out.write(stat ? statText(diff, out) : diffText(diff, out.paint));
  // Not a part of the diff, which can be piped into another program.
  (stat ? out : err).write(summaryText(diff));
}

export async function commitAgent(words: string, flags: CommitFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { message, force } = flags;
  const body = { ...(message !== undefined && { message }), ...(force && { force }) };
  const made = await api.call('commitSession', { path, body });
  const files = made.file_count === 1 ? '1 file' : `${made.file_count} files`;
  show(tools, made, `Committed ${files} on ${nameOf(made.branch)} as ${short(made.commit)}.`);
}

export async function pushAgent(words: string, flags: PushFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { remote, force } = flags;
  const body = { ...(remote !== undefined && { remote }), ...(force && { force }) };
  const done = await api.call('pushSession', { path, body });
  const what = `${nameOf(done.branch)} (${short(done.commit)})`;
  show(tools, done, `Pushed ${what} to ${nameOf(done.remote)}.`);
}

export async function openPr(words: string, flags: OpenPrFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { title, body: text, draft, base } = flags;
  const body = {
    ...(title !== undefined && { title }),
    ...(text !== undefined && { body: text }),
    ...(draft && { draft }),
    ...(base !== undefined && { base }),
  };
  const opened = await api.call('openPullRequest', { path, body });
  show(tools, opened, printable(opened.url));
}

export async function mergeAgent(words: string, flags: MergeFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { strategy, message, base, force } = flags;
  const body = {
    ...(strategy !== undefined && { strategy }),
    ...(message !== undefined && { message }),
    ...(base !== undefined && { base }),
    ...(force && { force }),
  };
  const merged = await api.call('mergeSession', { path, body });
  const into = `${nameOf(merged.base)}, which is at ${short(merged.commit)} now`;
  show(tools, merged, `Merged ${nameOf(merged.branch)} into ${into}.`);
}

export async function rebaseAgent(words: string, flags: RebaseFlags, tools: Tools): Promise<void> {
  const { api, path } = await found(words, flags, tools);
  const { base, force } = flags;
  const body = { ...(base !== undefined && { base }), ...(force && { force }) };
  const moved = await api.call('rebaseSession', { path, body });
  const onto = nameOf(moved.base ?? 'its base');
  const text =
    moved.before === moved.commit
      ? `${nameOf(moved.branch)} is up to date with ${onto}.`
      : `Rebased ${nameOf(moved.branch)} onto ${onto}: ${short(moved.commit)}.`;
  show(tools, moved, text);
}

async function found(
  words: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<{ api: DaemonApi; path: { id: string } }> {
  const api = await daemonApi(flags, tools);
  return { api, path: { id: (await findSession(api, words)).id } };
}

function nameOf(name: string | null): string {
  return name === null ? 'no branch' : printable(name);
}

function short(commit: string): string {
  return commit.slice(0, 12);
}

function show({ terminal: { out, json } }: Tools, answer: object, text: string): void {
  out.write(json ? `${JSON.stringify(answer, null, 2)}\n` : `${text}\n`);
}
