import { isUtf8 } from 'node:buffer';
import type { DaemonSchema } from '@millrace/contract/daemon';

type DiffFile = DaemonSchema<'DiffFile'>;
type DiffHunk = DaemonSchema<'DiffHunk'>;

export interface ParsedDiff {
  files: DiffFile[];
  additions: number;
  deletions: number;
  truncated: boolean;
}

const statuses: Readonly<Record<string, DiffFile['status']>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type_changed',
};

export interface DiffLimits {
  /** Hunk lines in all files together. */
  maxLines: number;
  maxFiles: number;
  /** Characters of a line. */
  maxLineLength: number;
}

/**
 * Parses the output of `git diff --raw --numstat --patch`: three sections with the files in the
 * same order. `isCut`: the output has no end.
 */
export function parseDiff(text: string, isCut: boolean, limits: DiffLimits): ParsedDiff {
  const lines = text.split('\n');
  // What follows the last line break is empty, or a part of a line.
  lines.pop();
  let at = 0;
  const files: DiffFile[] = [];
  for (; lines[at]?.startsWith(':'); at++) files.push(fileOf(lines[at]!));
  for (const file of files) {
    const counts = /^(\d+|-)\t(\d+|-)\t/.exec(lines[at] ?? '');
    if (!counts) break;
    at++;
    file.binary = counts[1] === '-';
    file.additions = Number(counts[1]) || 0;
    file.deletions = Number(counts[2]) || 0;
  }
  const patch = new Patch(lines, at, limits);
  const isWhole = patch.read(files) && !isCut;
  const listed = files.slice(0, limits.maxFiles);
  return {
    files: listed,
    additions: sum(files.map(({ additions }) => additions)),
    deletions: sum(files.map(({ deletions }) => deletions)),
    truncated: !isWhole || listed.length < files.length,
  };
}

/** `:100644 100755 OLD NEW R90<TAB>old<TAB>new` */
function fileOf(line: string): DiffFile {
  const [facts = '', first = '', second] = line.split('\t');
  const [oldMode = '', newMode = '', , , status = ''] = facts.slice(1).split(' ');
  const path = unquotePath(second ?? first);
  return {
    path,
    old_path: second === undefined ? null : unquotePath(first),
    status: statuses[status.charAt(0)] ?? 'modified',
    old_mode: modeOf(oldMode),
    new_mode: modeOf(newMode),
    binary: false,
    additions: 0,
    deletions: 0,
    hunks: [],
  };
}

function modeOf(mode: string): string | null {
  return mode === '000000' ? null : mode;
}

const hunkHeader = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

class Patch {
  #left: number;

  constructor(
    private readonly lines: readonly string[],
    private at: number,
    private readonly limits: DiffLimits,
  ) {
    this.#left = limits.maxLines;
  }

  /** Adds the hunks to their files. False when some are left out. */
  read(files: readonly DiffFile[]): boolean {
    let isWhole = true;
    for (const file of files) {
      // A changed type is two patches: the old file deleted, the new one added.
      const sections = file.status === 'type_changed' ? 2 : 1;
      for (let section = 0; section < sections; section++) {
        if (!this.#skipToSection()) return isWhole && isEmpty(file);
        isWhole = this.#readHunks(file) && isWhole;
      }
    }
    return isWhole;
  }

  #skipToSection(): boolean {
    while (this.at < this.lines.length && !this.lines[this.at]!.startsWith('diff --git ')) {
      this.at++;
    }
    return this.at++ < this.lines.length;
  }

  #readHunks(file: DiffFile): boolean {
    let isWhole = true;
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at]!;
      if (line.startsWith('diff --git ')) return isWhole;
      const header = hunkHeader.exec(line);
      if (!header) continue;
      this.at++;
      isWhole = this.#readHunk(file, header) && isWhole;
      this.at--;
    }
    return isWhole;
  }

  #readHunk(file: DiffFile, header: RegExpExecArray): boolean {
    const [, oldStart, oldLines = '1', newStart, newLines = '1', heading = ''] = header;
    const hunk: DiffHunk = {
      old_start: Number(oldStart),
      old_lines: Number(oldLines),
      new_start: Number(newStart),
      new_lines: Number(newLines),
      heading,
      lines: [],
    };
    const body = this.#bodyOf(hunk.old_lines, hunk.new_lines);
    const { maxLineLength } = this.limits;
    const shown = body.lines.slice(0, this.#left);
    hunk.lines = shown.map((line) => line.slice(0, maxLineLength));
    this.#left -= shown.length;
    if (shown.length > 0) file.hunks.push(hunk);
    const isCut = shown.some((line) => line.length > maxLineLength);
    return body.isWhole && shown.length === body.lines.length && !isCut;
  }

  /** The lines of a hunk; its header counts them per side. */
  #bodyOf(oldLines: number, newLines: number): { lines: string[]; isWhole: boolean } {
    const lines: string[] = [];
    let [oldLeft, newLeft] = [oldLines, newLines];
    for (; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at]!;
      const isNote = line.startsWith('\\');
      if (oldLeft <= 0 && newLeft <= 0 && !isNote) break;
      lines.push(line);
      if (isNote || line.startsWith('+')) newLeft -= isNote ? 0 : 1;
      else if (line.startsWith('-')) oldLeft--;
      else {
        oldLeft--;
        newLeft--;
      }
    }
    return { lines, isWhole: oldLeft <= 0 && newLeft <= 0 };
  }
}

/** True for a file that has no patch to show. */
function isEmpty({ additions, deletions, binary }: DiffFile): boolean {
  return !binary && additions + deletions === 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const escapes: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  '\\': 92,
};

/**
 * The path that git prints: quoted when it has unusual bytes. A path that is not UTF-8 stays as
 * git quotes it (`"caf\351.txt"`), so that different files keep different names.
 */
export function unquotePath(printed: string): string {
  if (!printed.startsWith('"') || !printed.endsWith('"') || printed.length < 2) return printed;
  const bytes: number[] = [];
  for (const [, octal, letter, plain] of printed
    .slice(1, -1)
    .matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gs)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (letter !== undefined) bytes.push(escapes[letter] ?? letter.charCodeAt(0));
    else bytes.push(...Buffer.from(plain!, 'utf8'));
  }
  const raw = Buffer.from(bytes);
  return isUtf8(raw) ? raw.toString('utf8') : printed;
}
