/*
 * opencode draws its input box and the user's messages as blocks with a bar at their left, and a
 * sidebar at the right. This brings a screen into the form that the markers of other CLIs use:
 * one line `> text` for the input box, and for each message of the user.
 */

const bar = /^\s*┃/;
const boxEnd = /^\s*╹▀/;
/** A line of the list of commands or files above the input box; the first one is selected. */
const choice = /^\s*┃ (\S+)\s.*┃/;

export function plainOpencodeScreen(screen: string): string {
  const raw = screen.split('\n');
  const lines = raw.map(withoutSidebar);
  const end = lines.findLastIndex((line) => boxEnd.test(line));
  const dialog = raw.findLastIndex((line) => /^\s*┃\s+△ Permission required/.test(line));
  if (dialog > end) return dialogLines(raw.slice(dialog)).join('\n');
  if (end === -1) return lines.map(plainLine).join('\n');
  const failedAt = failureLine(lines);
  let start = end;
  while (start > 0 && bar.test(lines[start - 1]!)) start -= 1;
  const choices = raw.slice(start, end).flatMap((line) => choice.exec(line)?.[1] ?? []);
  // The last line of the box names the agent and the model.
  const typed = lines
    .slice(start + choices.length, end)
    .map(contentOf)
    .filter((line) => line !== '')
    .slice(0, -1);
  const above = lines
    .slice(0, start)
    .map((line, index) => (index === failedAt ? `✕ ${contentOf(line)}` : plainLine(line)));
  return [...above, `> ${inputOf(typed.join(''), choices[0])}`, ...raw.slice(end + 1)].join('\n');
}

/**
 * Enter runs the selected command, so the input is shown with it when that is not the typed one.
 */
function inputOf(typed: string, selected: string | undefined): string {
  return selected === undefined || selected === typed ? typed : `${typed} (${selected})`;
}

/** `Permission required?`, the command, and the choices in one line. */
function dialogLines(raw: readonly string[]): string[] {
  const [, ...rest] = raw;
  return ['Permission required?', ...rest.filter((line) => bar.test(line)).map(contentOf)];
}

/**
 * The error of the last turn: a block below the user's message, followed by a line that names the
 * agent and the model, but no duration: `▣  Build · gpt-5`.
 */
function failureLine(lines: readonly string[]): number {
  const footer = lines.findLastIndex((line) => /^\s*▣ /.test(line));
  if (footer === -1 || (lines[footer]!.match(/ · /g) ?? []).length !== 1) return -1;
  const blocks: number[][] = [];
  for (const [index, line] of lines.slice(0, footer).entries()) {
    if (!bar.test(line)) continue;
    if (index > 0 && bar.test(lines[index - 1]!)) blocks.at(-1)!.push(index);
    else blocks.push([index]);
  }
  const last = blocks.at(-1);
  const isBelowMessage = last !== undefined && blocks.at(-2)?.at(-1) === last[0]! - 2;
  return isBelowMessage ? last.find((index) => contentOf(lines[index]!) !== '')! : -1;
}

/** Three spaces after a word start the sidebar. */
function withoutSidebar(line: string): string {
  return line.replace(/(\S) {3,}\S.*$/, '$1');
}

function contentOf(line: string): string {
  return line.replace(bar, '').trim();
}

function plainLine(line: string): string {
  if (!bar.test(line)) return line;
  const content = contentOf(line);
  return content === '' ? '' : `> ${content}`;
}
