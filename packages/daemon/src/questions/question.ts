import type { DaemonSchema } from '@millrace/contract/daemon';
import { globMatches } from '@millrace/kit/tokens';
import { fail } from '../core/api.js';

export type Question = DaemonSchema<'Question'>;
export type QuestionOption = DaemonSchema<'QuestionOption'>;
export type AnswerRequest = DaemonSchema<'AnswerRequest'>;

/** Drivers cut the body of a question here. */
export const maxBodyLength = 4_000;

/** The content of an agent's question. */
export type QuestionContent = Pick<Question, 'kind' | 'title' | 'body' | 'tool' | 'options'> & {
  /** How the driver finds the request again; undefined for a dialog on the screen. */
  ref?: string | undefined;
};

/** A question with the fields that only its driver needs. */
export interface StoredQuestion {
  question: Question;
  ref: string | null;
}

const callPrefix = 'call:';

/** The reference of a question that an agent asks by a call, in which it waits for the answer. */
export function callRef(id: string): string {
  return `${callPrefix}${id}`;
}

export function isFromCall(ref: string | null): boolean {
  return ref?.startsWith(callPrefix) === true;
}

const planPrefix = 'plan:';

/** The reference of a question that a plan asks about the work of a session. */
export function planRef(id: string): string {
  return `${planPrefix}${id}`;
}

export function isFromPlan(ref: string | null): boolean {
  return ref?.startsWith(planPrefix) === true;
}

/** The answer in a request; refuses one that the question does not offer. */
export function answerOf(question: Question, { option_id, text }: AnswerRequest): string {
  if (option_id !== undefined) {
    if (question.options.some(({ id }) => id === option_id)) return option_id;
    throw fail('UNKNOWN_OPTION', `The question has no option "${option_id}". ${choices(question)}`);
  }
  if (question.kind === 'text' && text !== undefined) return text;
  throw fail('UNKNOWN_OPTION', `The question takes no text. ${choices(question)}`);
}

function choices({ options }: Question): string {
  if (options.length === 0) return 'Answer it with `text`.';
  const each = options.map(({ id, label }) => `${id} (${label})`);
  return `Answer with one of: ${each.join(', ')}.`;
}

/** Refuses an answer to a question that is not open. */
export function checkOpen({ id, status, answered_by: by }: Question): void {
  if (status === 'open') return;
  const what =
    status === 'answered'
      ? `was already answered${by === null ? '' : ` by ${by}`}.`
      : 'is closed: the agent does not wait for an answer any more.';
  const next = 'List the open ones with `ctl agent questions`.';
  throw fail('QUESTION_CLOSED', `The question ${id} ${what} ${next}`);
}

/** Whether two readings of a screen show the same dialog. */
export function isSameQuestion(one: QuestionContent, other: QuestionContent): boolean {
  return signatureOf(one) === signatureOf(other);
}

function signatureOf({ title, body, options }: QuestionContent): string {
  return JSON.stringify([title, body, options.map(({ id, label }) => [id, label])]);
}

/** One rule of `permissions.policy`. */
export interface PolicyRule {
  /** Backend id, or a pattern with `*`; absent means every backend. */
  backend?: string | undefined;
  /** `execute`, `edit(*.md)`, `mcp__github__*`; `*` matches anything. */
  tool: string;
  action: 'allow' | 'ask' | 'deny';
}

export interface PolicyDecision {
  optionId: string;
  action: 'allow' | 'deny';
}

/** Names of tools of claude that mean one of the kinds of the Agent Client Protocol. */
const kinds: Readonly<Record<string, string>> = {
  Bash: 'execute',
  Edit: 'edit',
  MultiEdit: 'edit',
  NotebookEdit: 'edit',
  Write: 'edit',
  Read: 'read',
  Glob: 'search',
  Grep: 'search',
  WebFetch: 'fetch',
  WebSearch: 'fetch',
};

/** The tool kind for an agent's tool name; unknown names are returned unchanged. */
export function toolKind(name: string): string {
  return Object.hasOwn(kinds, name) ? kinds[name]! : name;
}

/**
 * The answer of the first matching rule; undefined when a person has to decide. A question about an
 * unknown tool is never answered, and `allow` only selects an option that allows once.
 */
export function decide(
  rules: readonly PolicyRule[],
  backend: string,
  question: Pick<Question, 'kind' | 'tool' | 'body' | 'options'>,
): PolicyDecision | undefined {
  const { kind, tool, body, options } = question;
  if (kind !== 'permission' || tool === null) return undefined;
  const rule = rules.find((each) => matches(each, backend, tool, body));
  if (!rule || rule.action === 'ask') return undefined;
  const option =
    rule.action === 'allow'
      ? options.find((each) => each.kind === 'allow_once')
      : (options.find((each) => each.kind === 'reject') ??
        options.find((each) => each.kind === 'reject_always'));
  return option && { optionId: option.id, action: rule.action };
}

function matches(rule: PolicyRule, backend: string, tool: string, body: string): boolean {
  if (rule.backend !== undefined && !globMatches(rule.backend, backend)) return false;
  const [, name = '', args] = /^([^(]*)(?:\((.*)\))?$/s.exec(rule.tool) ?? [];
  if (!globMatches(toolKind(name), tool)) return false;
  if (args === undefined) return true;
  // A denied command is found on any line of the text; an allowed one must be all of it.
  if (rule.action === 'deny') {
    return body.split('\n').some((line) => globMatches(args, line.trim()));
  }
  // The body was truncated, so the rule cannot be checked.
  if (body.length >= maxBodyLength) return false;
  return globMatches(args, body.trim()) && (!args.includes('*') || isOneCommand(body.trim()));
}

/** `git status*` must not cover `git status; rm -rf ~`. */
function isOneCommand(command: string): boolean {
  return !/[;&|<>`$(){}\\\n\r]/.test(command);
}
