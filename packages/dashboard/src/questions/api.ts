import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { daemon } from '../api/client.js';
import { read } from '../api/queries.js';

export type Question = DaemonSchema<'Question'>;
export type QuestionOption = DaemonSchema<'QuestionOption'>;
export type Answer = { option_id: string } | { text: string };

export const answerQuestion = (id: string, answer: Answer): Promise<Question> =>
  daemon.call('answerQuestion', { path: { id }, body: answer });

const openQuestions = read(['questions'], async () => {
  return (await daemon.call('listQuestions', { query: { status: 'open' } })).questions;
});

export interface Questions {
  /** The open questions, newest first. */
  open: readonly Question[];
  of: (sessionId: string) => readonly Question[];
}

/** The open questions; none until they are known. */
export function useQuestions(): Questions {
  const { data } = useQuery(openQuestions);
  return useMemo(() => {
    // Events replace rows, so answered ones are in the list until it is read again.
    const open = data?.filter(({ status }) => status === 'open') ?? [];
    return { open, of: (id) => open.filter(({ session_id }) => session_id === id) };
  }, [data]);
}
