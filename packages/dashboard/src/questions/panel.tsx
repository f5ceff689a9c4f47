import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries } from '../api/queries.js';
import { Panel } from '../parts/page.js';
import type { Question } from './api.js';
import { QuestionView } from './question.js';

interface QuestionPanelProps {
  questions: readonly Question[];
  /** Names the agent of each question. */
  showsAgents?: boolean;
}

/** Open questions; nothing when there are none. */
export function QuestionPanel({ questions, showsAgents = false }: QuestionPanelProps) {
  const { data: sessions } = useQuery({ ...queries.sessions(), enabled: showsAgents });
  if (questions.length === 0) return null;
  const nameOf = (id: string) => sessions?.find((one) => one.id === id)?.name ?? id;
  return (
    <Panel
      title={questions.length === 1 ? '1 open question' : `${questions.length} open questions`}
      className="questions-panel"
    >
      {questions.map((question) => (
        <div key={question.id} className="questions-item">
          {showsAgents && (
            <Link href={`/agents/${question.session_id}`}>{nameOf(question.session_id)}</Link>
          )}
          <QuestionView question={question} />
        </div>
      ))}
    </Panel>
  );
}
