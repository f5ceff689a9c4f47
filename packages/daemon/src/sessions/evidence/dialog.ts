import type { QuestionContent, QuestionOption } from '../../questions/question.js';
import { optionKind, readOwnDialog, type ScreenKind } from '../cli/own-rules.js';
import { plainOpencodeScreen } from './opencode-screen.js';
import { choosesByArrows, readPane } from './pane-markers.js';

/** A dialog on an agent's screen, and the position of its cursor. */
export interface Dialog extends QuestionContent {
  /** The id of the option that the cursor is at. */
  selected: string | undefined;
}

const optionLine = /^[\s│|]*([❯›●>])?\s*(\d)\.\s+(\S.*?)[\s│|]*$/;
const ruleLine = /^[\s│|]*[─━═╌╭╮╰╯▀▄]{4,}[\s─━═╌╭╮╰╯▀▄]*$/;
const maxBodyLength = 4_000;
const maxTitleLength = 300;
/** A dialog is at most this high above its options. */
const maxLinesAbove = 40;

/** The dialog that a screen shows, if it shows one. */
export function readDialog(cli: ScreenKind, screen: string): Dialog | undefined {
  if (typeof cli !== 'string') return readOwnDialog(cli, screen);
  if (readPane(cli, screen).kind !== 'question') return undefined;
  const lines = (cli === 'opencode' ? plainOpencodeScreen(screen) : screen)
    .split('\n')
    .map((line) => line.replaceAll('\u200b', '').trimEnd())
    .filter((line) => line.trim() !== '');
  const found = choosesByArrows(cli) ? choicesInLine(lines) : numberedOptions(lines);
  const above = lines.slice(Math.max(0, found.start - maxLinesAbove), found.start);
  const { title, body } = textIn(above);
  const tool = toolIn(`${title}\n${above.slice(-12).join('\n')}`, body);
  const { options, selected } = found;
  const kinds = new Set(options.map(({ kind }) => kind));
  const isPermission = kinds.has('allow_once') || kinds.has('allow_always') || tool !== null;
  const kind = options.length === 0 ? 'text' : isPermission ? 'permission' : 'choice';
  const text = tool === 'execute' ? commandIn(body) : body;
  return {
    kind,
    title: title.slice(0, maxTitleLength),
    body: text.join('\n').slice(0, maxBodyLength),
    tool,
    options,
    selected,
  };
}

interface Found {
  options: QuestionOption[];
  selected: string | undefined;
  /** The line of the first option. */
  start: number;
}

/** The last list of options, numbered from 1. */
function numberedOptions(lines: readonly string[]): Found {
  const none = { options: [], selected: undefined, start: lines.length };
  const start = lines.findLastIndex((line) => optionLine.exec(line)?.[2] === '1');
  if (start === -1) return none;
  const labels: string[] = [];
  let selected: string | undefined;
  let wrapped: string[] = [];
  for (const line of lines.slice(start)) {
    const [, cursor, number, label] = optionLine.exec(line) ?? [];
    if (label === undefined || Number(number) !== labels.length + 1) {
      wrapped.push(trimmed(line));
      continue;
    }
    // Lines between two options continue the first one.
    if (labels.length > 0 && wrapped.length > 0) {
      labels[labels.length - 1] += ` ${wrapped.join(' ')}`;
    }
    wrapped = [];
    labels.push(label);
    if (cursor !== undefined) selected = number;
  }
  return { options: labels.map(optionOf), selected, start };
}

/** opencode shows its choices side by side: `Allow once   Allow always   Reject   ⇆ select`. */
function choicesInLine(lines: readonly string[]): Found {
  const start = lines.findLastIndex((line) => /\S {2,}(?:Reject|Cancel)\b/.test(line));
  if (start === -1) return { options: [], selected: undefined, start: lines.length };
  const [choices = ''] = lines[start]!.split(/\s{3,}⇆|\s{4,}/);
  const labels = choices.trim().split(/ {2,}/);
  return { options: labels.map(optionOf), selected: undefined, start };
}

function optionOf(label: string, index: number): QuestionOption {
  return { id: String(index + 1), label, kind: optionKind(label) };
}

/** The question and its details: below it, or above it up to the dialog's border. */
function textIn(above: readonly string[]): { title: string; body: string[] } {
  const ending = above.findLastIndex((line) => /\?\W*$/.test(line.replaceAll(/[│|]/g, '')));
  const at = ending === -1 ? above.findLastIndex((line) => /\?\s/.test(line)) : ending;
  const rule = above.slice(0, at === -1 ? above.length : at).findLastIndex(isRule);
  if (at === -1) {
    const block = rule === -1 ? above.slice(-3) : above.slice(rule + 1);
    return { title: trimmed(block[0] ?? '') || 'It asks for a choice', body: block.map(trimmed) };
  }
  const title = trimmed(above[at]!).replace(/^[●❯›>*?-]+\s*/, '');
  const below = above.slice(at + 1).filter((line) => !isRule(line));
  const block = rule === -1 ? [] : above.slice(rule + 1, at);
  const shown = below.some((line) => /^\s*\$ \S/.test(line)) ? below : [...block, ...below];
  return {
    title: ending === -1 ? title.replace(/\?\s.*$/, '?') : title,
    body: shown.filter((line) => !isRule(line)).map(trimmed),
  };
}

function isRule(line: string): boolean {
  return ruleLine.test(line);
}

function trimmed(line: string): string {
  return line.replaceAll(/^[\s│|⎿]+|[\s│|]+$/g, '');
}

/** The tool kind of the request, as in the Agent Client Protocol. */
function toolIn(text: string, body: readonly string[]): string | null {
  const isCommand =
    /\bBash command\b|\bfollowing command\b|\ballow command\b|\bShell command\b|\[Shell\]|\? Shell\b/i;
  if (isCommand.test(text) || body.some((line) => /^\$ \S/.test(line))) return 'execute';
  const isEdit =
    /\bmake th(?:is|e following) edits?\b|\bapply this change\b|\b(?:edit|create|write|overwrite) file\b|\bdo you want to (?:create|overwrite)\b|\? (?:WriteFile|Edit)\b/i;
  if (isEdit.test(text)) return 'edit';
  return /\bfetch (?:this|content|the)\b|\? WebFetch\b/i.test(text) ? 'fetch' : null;
}

/** The command without the decoration of the dialog. */
function commandIn(body: readonly string[]): string[] {
  const marked = body.filter((line) => /^\$ \S/.test(line));
  if (marked.length > 0) return marked.map((line) => line.slice(2));
  const shell = body.find((line) => /^\? Shell\s+\S/.test(line));
  if (shell !== undefined) return [shell.replace(/^\? Shell\s+/, '')];
  return body.filter((line) => !/^(?:Bash command|#? ?Shell command)\b/i.test(line));
}
