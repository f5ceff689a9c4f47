import type { DaemonSettings } from '../../core/settings.js';
import type { QuestionContent, QuestionOption } from '../../questions/question.js';
import { resetTimeIn } from '../../think/reset-time.js';

/* Rules of `backends.extra`: what the screen and the output of a person's own command line mean. */

export type CliRules = Pick<
  DaemonSettings['backends']['extra'][number],
  'ready' | 'working' | 'asks' | 'limit' | 'prompt' | 'transcript'
>;
type QuestionRule = NonNullable<CliRules['asks']>[number];
export type LimitRule = NonNullable<CliRules['limit']>;

/** The rules about screens. */
export type ScreenRules = Pick<CliRules, 'ready' | 'working' | 'asks'>;

/** A row of the tables of known screens, or the rules of the config. */
export type ScreenKind = string | ScreenRules;

const compiled = new Map<string, RegExp>();

function regex(source: string): RegExp {
  const known = compiled.get(source) ?? new RegExp(source);
  compiled.set(source, known);
  return known;
}

/** tmux cuts blanks at the end of a line, which a rule such as `> $` expects. */
function matches(source: string | undefined, line: string): boolean {
  return source !== undefined && (regex(source).test(line) || regex(source).test(`${line} `));
}

const lastLines = 30;

function linesOf(screen: string): string[] {
  const lines = screen.split('\n').map((line) => line.trimEnd());
  return lines.filter((line) => line !== '').slice(-lastLines);
}

function questionAt(asks: ScreenRules['asks'], lines: readonly string[]): number {
  return lines.findLastIndex((line) => asks?.some(({ match }) => matches(match, line)));
}

/** The state that a screen shows. Lower lines are newer, so the lowest match decides. */
export function readOwnPane({ ready, working, asks }: ScreenRules, screen: string) {
  const lines = linesOf(screen);
  const readyAt = lines.findLastIndex((line) => matches(ready, line));
  const workAt = lines.findLastIndex((line) => matches(working, line));
  const question = questionAt(asks, lines);
  const before = lines.slice(0, Math.max(0, readyAt));
  const turnAt = before.findLastIndex((line) => matches(ready, line)) + 1;
  const isLast = readyAt !== -1 && question < readyAt && workAt < readyAt;
  // The lines of this turn: those after the prompt before.
  const above = isLast ? lines.slice(turnAt, readyAt) : lines.slice(readyAt + 1);
  const parts = { input: undefined, above, below: [] };
  if (question > Math.max(readyAt, workAt)) {
    const reason = `it asks: ${lines[question]!.trim().slice(0, 160)}`;
    return { kind: 'question' as const, reason, ...parts };
  }
  if (workAt > readyAt) {
    return { kind: 'busy' as const, reason: 'its screen shows a turn under way', ...parts };
  }
  // Programs that draw the whole screen show their input line below the sign of work.
  const isBelowWork = workAt >= turnAt;
  const isEcho = readyAt !== -1 && readyAt < lines.length - 1 && hasMore(ready!, lines[readyAt]!);
  if (readyAt !== -1) {
    const reason = 'its prompt is shown: the turn is over';
    return { kind: 'prompt' as const, reason, ...parts, isBelowWork, isEcho };
  }
  return { kind: 'unknown' as const, reason: 'its screen matches no rule', ...parts };
}

/** Text after the prompt, with lines below it: what was typed there before. */
function hasMore(ready: string, line: string): boolean {
  const found = regex(ready).exec(line);
  return found !== null && line.slice(found.index + found[0].length).trim() !== '';
}

/** The question that a screen shows, if a rule knows it. */
export function readOwnDialog(rules: ScreenRules, screen: string) {
  if (readOwnPane(rules, screen).kind !== 'question') return undefined;
  const lines = linesOf(screen);
  const at = questionAt(rules.asks, lines);
  const options = ruleFor(rules, lines[at]!).options.map(optionOf);
  const isPermission = options.some(({ kind }) => kind === 'reject' || kind === 'allow_once');
  const content: QuestionContent = {
    kind: options.length === 0 ? 'text' : isPermission ? 'permission' : 'choice',
    title: lines[at]!.trim().slice(0, 300),
    body: lines
      .slice(at + 1)
      .join('\n')
      .slice(0, 4_000),
    tool: null,
    options,
  };
  return { ...content, selected: undefined };
}

/** How to choose an option of the question on the screen. */
export function ownChoice(
  rules: ScreenRules,
  screen: string,
  optionId: string,
): QuestionRule['options'][number] | undefined {
  const lines = linesOf(screen);
  const at = questionAt(rules.asks, lines);
  return at === -1 ? undefined : ruleFor(rules, lines[at]!).options[Number(optionId) - 1];
}

function ruleFor({ asks = [] }: ScreenRules, line: string): QuestionRule {
  return asks.find(({ match }) => matches(match, line))!;
}

function optionOf(option: QuestionRule['options'][number], index: number): QuestionOption {
  const label = typeof option === 'string' ? option : option.label;
  return { id: String(index + 1), label, kind: optionKind(label) };
}

export function optionKind(label: string): QuestionOption['kind'] {
  if (/^(?:no?\b|reject|deny|cancel|exit|quit|never|don['’]?t\b|do not\b)/i.test(label)) {
    return 'reject';
  }
  if (!/^(?:y\b|yes|allow|always|proceed|approve|accept|trust|confirm)\b/i.test(label)) {
    return 'choice';
  }
  const isLasting =
    /\balways\b|\bask again\b|\bsession\b|\ball edits\b|\bparent folder\b|\bfrom now on\b/i;
  return isLasting.test(label) ? 'allow_always' : 'allow_once';
}

/** A limit that one of the lines reports, the last first. */
export function ownLimit(
  rule: LimitRule,
  lines: readonly string[],
  now: number,
): { reason: string; resetAt: number | undefined } | undefined {
  for (const line of lines.toReversed()) {
    const found = regex(rule.match).exec(line);
    if (!found) continue;
    const time = rule.reset === undefined ? found[1] : groupIn(rule.reset, lines);
    return { reason: line.trim().slice(0, 300), resetAt: resetOf(time, now) };
  }
  return undefined;
}

function groupIn(source: string, lines: readonly string[]): string | undefined {
  const line = lines.findLast((each) => regex(source).test(each));
  return line === undefined ? undefined : regex(source).exec(line)?.[1];
}

/** A time, a time of day, or a length, in any form that programs are known to print. */
function resetOf(text: string | undefined, now: number): number | undefined {
  const time = text?.trim();
  if (time === undefined || time === '') return undefined;
  if (/^\d{1,8}$/.test(time)) return now + Number(time) * 1000;
  const clock = /^(\d{1,2}):(\d\d)$/.exec(time);
  if (clock) {
    const [hour, half] = [Number(clock[1]), Number(clock[1]) < 12 ? 'am' : 'pm'];
    return resetTimeIn(`resets ${hour % 12 || 12}:${clock[2]}${half}`, now);
  }
  return resetTimeIn(`resets_at: ${time}\nresets ${time}\nresets at ${time}`, now);
}
