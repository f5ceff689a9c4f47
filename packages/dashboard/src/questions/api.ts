import { queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { requestJson } from '../api/request.js';
import { useDaemonFeatures } from '../api/use-daemon-features.js';

type OptionKind = 'allow_once' | 'allow_always' | 'reject' | 'reject_always' | 'choice';

export interface QuestionOption {
  id: string;
  label: string;
  kind: OptionKind;
}

/** A permission request or a choice of an agent. */
export interface Question {
  id: string;
  session_id: string;
  status: 'open' | 'answered' | 'closed';
  kind: 'permission' | 'choice' | 'text';
  title: string;
  body: string;
  tool: string | null;
  options: readonly QuestionOption[];
  asked_at: string;
}

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
