import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { requestJson } from '../api/request.js';
import { useDaemonFeatures } from '../api/use-daemon-features.js';

export type Question = DaemonSchema<'Question'>;
export type QuestionOption = DaemonSchema<'QuestionOption'>;
export type Answer = { option_id: string } | { text: string };

const base = `${location.origin}/api/v1/questions`;

export const answerQuestion = (id: string, answer: Answer): Promise<Question> =>
  requestJson('POST', `${base}/${encodeURIComponent(id)}:answer`, { body: answer });

const openQuestions = () =>
  queryOptions({
    queryKey: ['questions'],
    queryFn: async () =>
      (await requestJson<{ questions: Question[] }>('GET', `${base}?status=open`)).questions,
  });

export interface Questions {
  /** The open questions, newest first. */
  open: readonly Question[];
  of: (sessionId: string) => readonly Question[];
}

/** The open questions; none when the daemon has no questions. */
export function useQuestions(): Questions {
  const { questions: isSupported } = useDaemonFeatures();
  const { data } = useQuery({ ...openQuestions(), enabled: isSupported });
  return useMemo(() => {
    // Events replace rows, so answered ones are in the list until it is read again.
    const open = data?.filter(({ status }) => status === 'open') ?? [];
    return { open, of: (id) => open.filter(({ session_id }) => session_id === id) };
  }, [data]);
}
