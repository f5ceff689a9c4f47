import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { listText } from '../base/list-text.js';
import { printable } from '../render/text.js';
import type { Tools } from '../base/tools.js';
import { chosen } from './choosing.js';
import { readSessions } from './find-session.js';

type Question = DaemonSchema<'Question'>;

export interface QuestionsFlags extends DaemonFlags {
  all?: boolean;
}

export interface AnswerFlags extends DaemonFlags {
  text?: string;
}

const maxQuestions = 1_000;

export async function showQuestions(flags: QuestionsFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const questions = await readQuestions(api, flags.all ? undefined : 'open');
  const { json } = tools.terminal;
  const sessions = json || questions.length === 0 ? [] : await readSessions(api);
  const names = new Map(sessions.map(({ id, name }) => [id, name]));
  tools.terminal.show({ questions }, (out) => {
    if (questions.length === 0)
      return flags.all ? 'No agent has asked anything yet.\n' : 'No agent waits for an answer.\n';
    const rows = questions.map((question) => ({
      ...question,
      agent: names.get(question.session_id) ?? question.session_id,
    }));
    return listText(daemonLists.questions, rows, systemClock.now(), out);
  });
}

export async function answerQuestion(
  words: string,
  option: string | undefined,
  { text, ...flags }: AnswerFlags,
  tools: Tools,
): Promise<void> {
  if (option !== undefined && text !== undefined) {
    throw new UsageError('Give an option or --text, not both.');
  }
  const api = await daemonApi(flags, tools);
  const question = await findQuestion(api, words);
  if (option === undefined && text === undefined) throw nothingChosen(question);
  const body = text === undefined ? { option_id: optionId(question, option!) } : { text };
  const answered = await api.call('answerQuestion', { path: { id: question.id }, body });
  const label = question.options.find(({ id }) => id === answered.answer)?.label ?? text ?? '';
  tools.terminal.show(answered, `Answered ${printable(`"${question.title}" with "${label}"`)}.\n`);
}

/** By id, by id prefix, or by the agent that asks. */
async function findQuestion(api: DaemonApi, words: string): Promise<Question> {
  const questions = await readQuestions(api, undefined);
  const sessions = await readSessions(api);
  const asking = sessions.filter(({ id, name }) => id === words || name === words);
  const open = questions.filter(
    ({ status, session_id }) => status === 'open' && asking.some(({ id }) => id === session_id),
  );
  if (open.length === 1) return open[0]!;
  if (asking.length > 0 && open.length === 0) {
    throw new Refusal(
      'QUESTION_NOT_FOUND',
      `the agent "${words}" asks nothing. List open questions with \`ctl agent questions\`.`,
    );
  }
  const named = (open.length > 1 ? open : questions).map((each) => ({
    ...each,
    name: open.length > 1 ? words : each.title,
  }));
  const list = 'ctl agent questions';
  return chosen(named, words, { kind: 'question', code: 'QUESTION_NOT_FOUND', list });
}

/** An option by its id, or by its kind where only one option has it. */
function optionId({ options }: Question, words: string): string {
  if (options.some(({ id }) => id === words)) return words;
  const ofKind = options.filter(({ kind }) => kind === words);
  return ofKind.length === 1 ? ofKind[0]!.id : words;
}

function nothingChosen({ id, title, options }: Question): Error {
  const question = `It asks: ${printable(title)}`;
  if (options.length === 0) {
    return new UsageError(`${question} Answer in words: ctl agent answer ${id} --text "..."`);
  }
  const each = options.map((option) => `${option.id} (${printable(option.label)})`);
  return new UsageError(`${question} Choose one of: ${each.join(', ')}.`);
}

export async function readQuestions(
  api: DaemonApi,
  status: Question['status'] | undefined,
): Promise<Question[]> {
  const query = { limit: maxQuestions, ...(status === undefined ? {} : { status }) };
  return (await api.call('listQuestions', { query })).questions;
}
