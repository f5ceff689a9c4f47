import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Flags, Tools } from '../base/tools.js';
import { printable } from '../render/text.js';
import { findSession } from './find-session.js';
import type { Paint } from '../render/paint.js';
import { renderTable, type Sheet } from '../render/table.js';

export interface BaseFlags extends DaemonFlags {
  base?: string;
}
export interface DiffFlags extends BaseFlags {
  stat?: boolean;
}
export type CommitFlags = DaemonFlags & Flags<'message', 'force'>;
export type PushFlags = DaemonFlags & Flags<'remote', 'force'>;
export type OpenPrFlags = BaseFlags & Flags<'title body', 'draft'>;
export type MergeFlags = BaseFlags &
  Flags<'message', 'force'> & { strategy?: DaemonSchema<'MergeStrategy'> };
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

function show({ terminal }: Tools, answer: object, text: string): void {
  terminal.show(answer, `${text}\n`);
}

type Diff = DaemonSchema<'SessionDiff'>;
type DiffFile = DaemonSchema<'DiffFile'>;

/** The changes as a unified diff. */
export function diffText({ files }: Diff, paint: Paint): string {
  return files.flatMap((file) => [...headOf(file, paint), ...bodyOf(file, paint), '']).join('\n');
}

function headOf(file: DiffFile, paint: Paint): string[] {
  const { path, old_path: old, status, old_mode: oldMode, new_mode: newMode, binary } = file;
  const from = old ?? path;
  const lines = [`diff --git a/${from} b/${path}`];
  if (status === 'added') lines.push(`new file mode ${newMode}`);
  else if (status === 'deleted') lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (old !== null) lines.push(`rename from ${old}`, `rename to ${path}`);
  const before = status === 'added' ? '/dev/null' : `a/${from}`;
  const after = status === 'deleted' ? '/dev/null' : `b/${path}`;
  if (binary) lines.push(`Binary files ${before} and ${after} differ`);
  else if (file.hunks.length > 0) lines.push(`--- ${before}`, `+++ ${after}`);
  return lines.map((line) => paint('strong', printable(line)));
}

function bodyOf({ hunks }: DiffFile, paint: Paint): string[] {
  return hunks.flatMap((hunk) => {
    const place = `@@ -${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@`;
    const heading = hunk.heading === '' ? '' : ` ${hunk.heading}`;
    return [paint('dim', `${place}${heading}`), ...hunk.lines.map((line) => painted(line, paint))];
  });
}

function painted(line: string, paint: Paint): string {
  if (line.startsWith('+')) return paint('ok', line);
  return line.startsWith('-') ? paint('bad', line) : line;
}

/** The changed files with their counts. */
export function statText({ files }: Diff, sheet: Sheet): string {
  const rows = files.map((file) => [
    file.old_path === null ? file.path : `${file.old_path} => ${file.path}`,
    file.binary ? `${file.status}, binary` : file.status,
    file.additions,
    file.deletions,
  ]);
  return renderTable(['FILE', 'STATUS', 'ADDED', 'DELETED'], rows, sheet);
}

/** `2 files changed, 5 lines added, 1 line deleted, compared with main` */
export function summaryText(diff: Diff): string {
  const { files, additions, deletions, base, base_commit: commit, truncated } = diff;
  const count = (many: number, noun: string) => `${many} ${noun}${many === 1 ? '' : 's'}`;
  const what = base === null ? (commit?.slice(0, 12) ?? 'an empty repository') : printable(base);
  const parts = [
    `${count(files.length, 'file')} changed`,
    `${count(additions, 'line')} added`,
    `${count(deletions, 'line')} deleted`,
    `compared with ${what}`,
  ];
  return `${parts.join(', ')}${truncated ? '; the diff is too long and was cut' : ''}\n`;
}
