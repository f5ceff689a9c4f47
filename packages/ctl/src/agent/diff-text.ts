import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Paint } from '../render/paint.js';
import { renderTable, type Sheet } from '../render/table.js';
import { printable } from '../render/text.js';

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
  const titles = ['FILE', 'STATUS', 'ADDED', 'DELETED'].map((title) => ({ title }));
  const rows = files.map((file) => [
    file.old_path === null ? file.path : `${file.old_path} => ${file.path}`,
    file.binary ? `${file.status}, binary` : file.status,
    file.additions,
    file.deletions,
  ]);
  return renderTable(titles, rows, sheet);
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
