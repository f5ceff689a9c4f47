import type { DaemonSchema } from '@millrace/contract/daemon';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import { tellingIds } from './choosing.js';

type Question = DaemonSchema<'Question'>;

/** Table of questions, newest first, with the options or the answer of each. */
export function questionsScreen(
  questions: readonly Question[],
  names: ReadonlyMap<string, string>,
  now: number,
  sheet: Sheet,
): string {
  const shortIds = tellingIds(
    questions.map(({ id }) => id),
    sheet,
  );
  const columns = [
    { title: 'ID' },
    { title: 'AGENT' },
    { title: 'AGE' },
    { title: 'QUESTION', overflow: 'wrap' as const },
    { title: 'ANSWER', overflow: 'wrap' as const },
  ];
  const rows = questions.map((question): Cell[] => [
    shortIds.get(question.id)!,
    names.get(question.session_id) ?? question.session_id,
    timeText(Date.parse(question.asked_at), now, sheet),
    question.body === '' ? question.title : `${question.title} ${oneLine(question.body)}`,
    answerCell(question),
  ]);
  const isOpen = questions.some(({ status }) => status === 'open');
  const hint = isOpen ? asTyped('Answer one with `ctl agent answer ID OPTION`.\n') : '';
  return renderTable(columns, rows, sheet) + hint;
}

function answerCell(question: Question): Cell {
  const { status, options, answer, answered_by: by } = question;
  if (status === 'closed') return { text: 'closed', tone: 'dim' };
  if (status === 'answered') {
    const label = options.find(({ id }) => id === answer)?.label ?? answer ?? 'answered';
    return { text: `${label} (by ${by})`, tone: 'dim' };
  }
  if (options.length === 0) return { text: '--text "..."', tone: 'warn' };
  const text = options.map(({ id, label }) => `${id}: ${label}`).join('; ');
  return { text, tone: 'warn' };
}

const maxBody = 200;

function oneLine(body: string): string {
  const line = body.replaceAll(/\s+/g, ' ').trim();
  return line.length > maxBody ? `${line.slice(0, maxBody - 1)}…` : line;
}
