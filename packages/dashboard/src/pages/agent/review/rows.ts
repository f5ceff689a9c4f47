import type { DiffFile, DiffHunk } from './api.js';

/** One side of a line. */
export interface Side {
  number: number;
  text: string;
}

export type DiffRow =
  | { kind: 'file'; file: DiffFile }
  | { kind: 'note'; text: string }
  | { kind: 'hunk'; text: string }
  /** Unchanged lines have both sides, changed ones only in the side-by-side view. */
  | { kind: 'line'; change: 'same' | 'added' | 'deleted' | 'changed'; old?: Side; new?: Side };

export type DiffLayout = 'unified' | 'split';

/** All rows of a diff: a heading for each file, then its hunks. */
export function diffRows(files: readonly DiffFile[], layout: DiffLayout): DiffRow[] {
  return files.flatMap((file) => [
    { kind: 'file' as const, file },
    ...notesOf(file).map((text) => ({ kind: 'note' as const, text })),
    ...file.hunks.flatMap((hunk) => [
      { kind: 'hunk' as const, text: hunkText(hunk) },
      ...(layout === 'split' ? paired(linesOf(hunk)) : linesOf(hunk)),
    ]),
  ]);
}

function notesOf({ old_path, old_mode, new_mode, binary, hunks }: DiffFile): string[] {
  const notes: string[] = [];
  if (old_path !== null) notes.push(`Before: ${old_path}`);
  if (old_mode !== null && new_mode !== null && old_mode !== new_mode) {
    notes.push(`Mode changed from ${old_mode} to ${new_mode}.`);
  }
  if (binary) notes.push('Binary file.');
  else if (hunks.length === 0 && notes.length === 0) notes.push('No lines are shown.');
  return notes;
}

const hunkText = ({ old_start, old_lines, new_start, new_lines, heading }: DiffHunk) =>
  `@@ -${old_start},${old_lines} +${new_start},${new_lines} @@ ${heading}`.trimEnd();

type Line = Extract<DiffRow, { kind: 'line' | 'note' }>;

function linesOf({ lines, old_start, new_start }: DiffHunk): Line[] {
  let [oldNumber, newNumber] = [old_start, new_start];
  return lines.map((line): Line => {
    const text = line.slice(1);
    if (line.startsWith('+')) {
      return { kind: 'line', change: 'added', new: { number: newNumber++, text } };
    }
    if (line.startsWith('-')) {
      return { kind: 'line', change: 'deleted', old: { number: oldNumber++, text } };
    }
    if (line.startsWith('\\')) return { kind: 'note', text: text.trim() };
    return {
      kind: 'line',
      change: 'same',
      old: { number: oldNumber++, text },
      new: { number: newNumber++, text },
    };
  });
}

/**
 * Puts deleted lines beside the added lines that follow them. Notes about a missing newline are
 * left out, because they belong to one side.
 */
function paired(lines: readonly Line[]): Line[] {
  const rows: Line[] = [];
  let deleted: Side[] = [];
  let added: Side[] = [];
  const flush = () => {
    for (let index = 0; index < Math.max(deleted.length, added.length); index++) {
      const [before, after] = [deleted[index], added[index]];
      const change = before && after ? 'changed' : before ? 'deleted' : 'added';
      rows.push({
        kind: 'line',
        change,
        ...(before && { old: before }),
        ...(after && { new: after }),
      });
    }
    [deleted, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === 'line' && line.change === 'deleted') {
      if (added.length > 0) flush();
      deleted.push(line.old!);
    } else if (line.kind === 'line' && line.change === 'added') {
      added.push(line.new!);
    } else if (line.kind === 'line') {
      flush();
      rows.push(line);
    }
  }
  flush();
  return rows;
}

export interface TreeFolder {
  name: string;
  folders: TreeFolder[];
  files: DiffFile[];
}

/** The files as folders; a folder with nothing but one folder is joined with it. */
export function fileTree(files: readonly DiffFile[]): TreeFolder {
  const root: TreeFolder = { name: '', folders: [], files: [] };
  for (const file of files) {
    let folder = root;
    for (const name of file.path.split('/').slice(0, -1)) {
      let next = folder.folders.find((one) => one.name === name);
      if (!next) folder.folders.push((next = { name, folders: [], files: [] }));
      folder = next;
    }
    folder.files.push(file);
  }
  return { ...root, folders: root.folders.map(joined) };
}

function joined(folder: TreeFolder): TreeFolder {
  const [only] = folder.folders;
  if (only && folder.folders.length === 1 && folder.files.length === 0) {
    return joined({ ...only, name: `${folder.name}/${only.name}` });
  }
  return { ...folder, folders: folder.folders.map(joined) };
}
