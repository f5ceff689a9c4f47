/**
 * How the screens of the command lines look when they work, ask and wait: one row for each. The
 * texts are those of the programs; a screen that matches none is unknown, never idle.
 */

import { readOwnPane, type ScreenKind } from '../cli/own-rules.js';
import { plainOpencodeScreen } from './opencode-screen.js';

export interface PaneReading {
  kind: 'busy' | 'question' | 'prompt' | 'unknown';
  /** The evidence as text. */
  reason: string;
  /** Text in the input box, if there is one. */
  input: string | undefined;
  /** The last lines above the input box. */
  above: readonly string[];
  /** The line of the input box and all below it. */
  below: readonly string[];
  /** By rules of the config: a sign of work is still shown above the prompt. */
  isBelowWork?: boolean;
  /** By rules of the config: the prompt is that of an earlier turn. */
  isEcho?: boolean;
}

interface Markers {
  /** Shown only while a turn is under way. */
  busy: RegExp;
  /** Shown only while a choice is to be made. */
  question: RegExp;
  /** The input line; the group is the typed text. */
  prompt: RegExp;
  /** Shown in an empty input box. */
  placeholder: RegExp;
  /** Shown around the input box at all times, whatever happens. */
  footer: RegExp;
  /** Matches an error that ended a turn; the group is the error. */
  failure: RegExp;
}

const never = /(?!)/;

const rows: Readonly<Record<string, Markers>> = {
  claude: {
    busy: /\besc to interrupt\b/i,
    question:
      /^[\s│|]*❯\s*\d+\.\s|\bdo you trust the files in this folder\b|\benter to (?:select|confirm)\b.*\besc to\b/i,
    prompt: /^[\s│|]*[>❯](?:[ \u00a0](.*?))?[\s│|]*$/,
    placeholder: /^Try "/,
    footer:
      /\? for shortcuts\b|\bshift\+tab to cycle\b|\b(?:accept edits|plan mode|bypass permissions) on\b|\bcontext left until auto-compact\b|\bctrl[+-]\w(?: again)? to \w|\btab to toggle\b|\/help for help\b|^\s*Tip: /i,
    failure: /^[\s⎿●]*(API Error\b.*)/,
  },
  codex: {
    busy: /\besc to interrupt\b/i,
    question:
      /^\s*[›❯>]\s*\d+\.\s|\bpress enter to (?:confirm|continue)\b|\ballow command\?|\bwould you like to run the following command\b/i,
    prompt: /^\s*[›▌](?:[ \u00a0](.*?))?\s*$/,
    placeholder:
      /^(?:Ask Codex|Explain|Summarize|Find and fix|Improve|Implement|Write tests|Use \/)/,
    footer:
      /\? for shortcuts\b|\d+% (?:context )?left\b|⏎ send\b|⌃C quit\b|\bctrl[+ -]+c(?: again)? to (?:quit|exit|interrupt)\b|\btab to queue message\b|^\s*(?:Token usage: |To continue this session, run )/i,
    failure: /^\s*■ (?!Conversation interrupted)(.+)/,
  },
  opencode: {
    busy: /\besc (?:again to )?interrupt\b/i,
    question: /^Permission required\?|\bAllow once\b.*\bReject\b/,
    prompt: /^>(?: (.*))?$/,
    placeholder: /^Ask anything\b/,
    footer: /\btab agents\b|\bctrl\+p commands\b|^\s*▣ /,
    failure: /^✕ (.+)/,
  },
  gemini: {
    // qwen: `⠋ Pondering (2s · ↓ 12 tokens · esc to cancel)`
    busy: /\((?:[^()]*· )?esc to cancel\b/i,
    question:
      /^[\s│|]*●\s*\d+\.\s|\bwaiting for user confirmation\b|\bapply this change\?|\ballow execution\b/i,
    prompt: /^[\s│|]*[>!](?:[ \u00a0]+(.*?))?[\s│|]*$/,
    placeholder: /^Type your message\b/,
    footer:
      /\bcontext left\)|\b(?:no )?sandbox\b.*\(see \/docs\)|\((?:shift|ctrl) ?\+ ?\w+ to toggle\)|\(ctrl ?\+ ?\w for details\)|^\s*Using:? \d+ |\bPress ctrl ?\+ ?c again\b/i,
    failure: /^[\s✕✗×]*(\[?API Error\b.*)/,
  },
};

/** The same screens under another name. */
const sameAs: Readonly<Record<string, string>> = { agy: 'gemini', qwen: 'gemini' };

/** Programs with choices in one row: arrow keys move between them, digits do nothing. */
export function choosesByArrows(cli: ScreenKind): boolean {
  return cli === 'opencode';
}

/** Is anything known of the screens of this command line? */
export function hasMarkers(cli: ScreenKind): boolean {
  if (typeof cli !== 'string') return cli.ready !== undefined;
  return Object.hasOwn(rows, sameAs[cli] ?? cli);
}

/** Lower lines are newer, and only these are read. */
const lastLines = 20;
const linesAbove = 8;

/** The state that a screen shows. */
export function readPane(cli: ScreenKind, screen: string): PaneReading {
  if (typeof cli !== 'string') return readOwnPane(cli, screen);
  const markers = markersOf(cli);
  const lines = (cli === 'opencode' ? plainOpencodeScreen(screen) : screen)
    .split('\n')
    // qwen draws its cursor as a zero-width space.
    .map((line) => line.replaceAll('\u200b', '').trimEnd())
    .filter((line) => line.trim() !== '')
    .slice(-lastLines);
  const at = lines.findLastIndex((line) => markers.prompt.test(line));
  const typed = at === -1 ? undefined : (markers.prompt.exec(lines[at]!)?.[1]?.trim() ?? '');
  const input = typed !== undefined && markers.placeholder.test(typed) ? '' : typed;
  const above = lines.slice(Math.max(0, (at === -1 ? lines.length : at) - linesAbove), at);
  const below = at === -1 ? [] : lines.slice(at);
  const parts = { above, below };
  // A dialog that was answered may still be shown above the input box.
  const questionAt = lines.findLastIndex((line) => markers.question.test(line));
  if (questionAt !== -1 && questionAt >= at) {
    return { kind: 'question', reason: questionIn(lines), input: undefined, ...parts };
  }
  if (lines.some((line) => markers.busy.test(line))) {
    return { kind: 'busy', reason: retryIn(lines) ?? busyReason, input, ...parts };
  }
  if (input === '') {
    return { kind: 'prompt', reason: 'its prompt is empty: the turn is over', input, ...parts };
  }
  return { kind: 'unknown', reason: 'its screen says nothing that is known', input, ...parts };
}

const busyReason = 'its screen shows a turn under way';

/** The screen's message about retries of the provider. */
function retryIn(lines: readonly string[]): string | undefined {
  const line = lines.findLast((each) =>
    /\b(?:retrying (?:in|attempt)|reconnecting\b.*\d\/\d)/i.test(each),
  );
  return line === undefined ? undefined : `it retries: ${trimDrawing(line).slice(0, maxReason)}`;
}

/** The error that ended the last turn, shown below the last typed line. */
export function failureAbove(cli: ScreenKind, { above }: PaneReading): string | undefined {
  const { failure } = markersOf(cli);
  for (const line of above.toReversed()) {
    if (typedLine.test(line)) return undefined;
    const found = failure.exec(line)?.[1];
    if (found !== undefined) return trimDrawing(found).slice(0, maxReason);
  }
  return undefined;
}

/** A line that shows earlier input. */
export const typedLine = /^[\s│|]*[>❯›][ \u00a0]\S/;

/**
 * Whether the input box contains exactly this text. Boxes wrap lines and draw borders, so white
 * space and borders are ignored. Many lines are shown as a summary, and a very long text only in
 * part.
 */
export function holdsInput({ below, input }: PaneReading, text: string): boolean {
  if (input === undefined || below.length === 0) return false;
  const [first, ...rest] = below;
  const head = squeeze(first!.replace(/^[\s│|]*[>❯›▌!*][ \u00a0]?/, ''));
  const wanted = squeeze(text);
  if (head === wanted || /^\[Pasted\b[^\]]*\]$/i.test(input)) return true;
  let shown = head;
  for (const line of rest) {
    if (!wanted.startsWith(shown) || isRule(line)) break;
    shown += squeeze(line);
    if (shown === wanted) return true;
  }
  return head.length >= minPartLength && wanted.includes(head);
}

/** Minimum length of a text cut at the edge of its box that still identifies it. */
const minPartLength = 60;

function squeeze(line: string): string {
  return line.replaceAll(/[\s│|]+/g, '');
}

function isRule(line: string): boolean {
  return /^[\s─━═╭╮╰╯▀▄]+$/.test(line);
}

function trimDrawing(line: string): string {
  return line.replaceAll(/^[\s│|⎿●•✻■⏺✕]+|[\s│|]+$/g, '');
}

const maxReason = 300;

/** The last input line among these; -1 for none. */
export function promptLineIn(cli: string, lines: readonly string[]): number {
  const { prompt } = markersOf(cli);
  return lines.findLastIndex((line) => prompt.test(line));
}

/** The text between the last two prompts of a screen; undefined when there is none. */
export function screenAnswer(cli: ScreenKind, lines: readonly string[]): string | undefined {
  if (typeof cli !== 'string') return readOwnPane(cli, lines.join('\n')).above.join('\n').trim();
  if (!hasMarkers(cli)) return undefined;
  const screen = lines.join('\n');
  const plain = cli === 'opencode' ? plainOpencodeScreen(screen).split('\n') : lines;
  // A program that has ended may have cleared its last prompt.
  const prompt = promptLineIn(cli, plain);
  const isTyped = (line: string) => typedLine.test(line) && !isEmptyPrompt(cli, line);
  const end = prompt === -1 || isTyped(plain[prompt]!) ? plain.length : prompt;
  const typed = plain.slice(0, end).findLastIndex(isTyped);
  if (typed === -1) return undefined;
  const said = plain.slice(typed + 1, end).filter((line) => !isFurniture(cli, line));
  const text = said.filter((line) => !isRule(line) || line.trim() === '').map(trimDrawing);
  return text.join('\n').trim() || undefined;
}

function isEmptyPrompt(cli: string, line: string): boolean {
  const { prompt, placeholder } = markersOf(cli);
  const typed = prompt.exec(line)?.[1]?.trim() ?? '';
  return prompt.test(line) && (typed === '' || placeholder.test(typed));
}

/** Is it of the screen itself, and nothing that the agent says? */
export function isFurniture(cli: string, line: string): boolean {
  const { prompt, busy, footer } = markersOf(cli);
  return prompt.test(line) || busy.test(line) || footer.test(line);
}

function markersOf(cli: ScreenKind): Markers {
  if (typeof cli !== 'string') return unknownScreen;
  const name = sameAs[cli] ?? cli;
  return Object.hasOwn(rows, name) ? rows[name]! : unknownScreen;
}

const unknownScreen: Markers = {
  busy: never,
  question: never,
  prompt: never,
  placeholder: never,
  footer: never,
  failure: never,
};

const maxQuestionLength = 160;

/** The last question line, without decoration, and its command. */
function questionIn(lines: readonly string[]): string {
  const ending = lines.findLastIndex((line) => /\?\W*$/.test(line.replaceAll(/[│|]/g, '')));
  // Some dialogs have an explanation after the question.
  const at = ending === -1 ? lines.findLastIndex((line) => /\?\s/.test(line)) : ending;
  const line = ending === -1 ? (lines[at] ?? '').replace(/\?\s.*$/, '?') : (lines[at] ?? '');
  const text = line.replaceAll(/^[\s│|●❯›>*-]+|[\s│|]+$/g, '');
  if (text === '') return 'it asks for a choice';
  const command = commandIn(lines, at);
  const about = command === undefined ? '' : ` (${command.slice(0, maxQuestionLength)})`;
  return `it asks: ${text.slice(0, maxQuestionLength)}${about}`;
}

/** Claude shows the command below "Bash command", codex after `$`, gemini after "? Shell". */
function commandIn(lines: readonly string[], questionAt: number): string | undefined {
  const marked = lines.slice(questionAt).find((line) => /^\s*\$ \S/.test(line));
  if (marked !== undefined) return marked.trim().slice(2);
  const shell = lines.findLast((line) => /^[\s│|]*\? Shell\s+\S/.test(line));
  if (shell !== undefined) return trimDrawing(shell).replace(/^\? Shell\s+/, '');
  const title = lines.findLastIndex((line) => /^[\s│|]*Bash command\b/.test(line));
  return title === -1 || title >= questionAt - 1 ? undefined : trimDrawing(lines[title + 1]!);
}
