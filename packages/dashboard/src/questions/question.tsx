import { useId, useState } from 'react';
import { useAction } from '../parts/action.js';
import { Time } from '../parts/time.js';
import { answerQuestion, type Answer, type Question, type QuestionOption } from './api.js';
import './questions.css';

interface QuestionProps {
  question: Question;
  /** Small buttons and a low body, for a card on the board. */
  isShort?: boolean;
}

const classes: Readonly<Record<QuestionOption['kind'], string | undefined>> = {
  allow_once: 'primary',
  allow_always: undefined,
  reject: 'danger',
  reject_always: 'danger',
  choice: undefined,
};

/** A question of an agent with a button for each answer. */
export function QuestionView({ question, isShort = false }: QuestionProps) {
  const { id, title, body, tool, kind, options, asked_at } = question;
  const titleId = useId();
  const answer = useAction({
    run: (given: Answer) => answerQuestion(id, given),
    done: (_, given) => `Answered: ${labelOf(question, given)}`,
    refresh: ['questions', 'sessions', 'session', 'board', 'inbox'],
  });
  return (
    <div className="question" role="group" aria-labelledby={titleId}>
      <p className="question-title" id={titleId}>
        {title}
      </p>
      {body !== '' && (
        <pre className={isShort ? 'question-body question-low' : 'question-body'} tabIndex={0}>
          {body}
        </pre>
      )}
      {!isShort && (
        <p className="muted">
          {tool !== null && `${tool} · `}asked <Time at={asked_at} />
        </p>
      )}
      {kind === 'text' ? (
        <TextAnswer isBusy={answer.isDisabled} onAnswer={(text) => answer.mutate({ text })} />
      ) : (
        <div className="row">
          {options.map((option) => (
            <button
              key={option.id}
              type="button"
              className={[classes[option.kind], isShort && 'small'].filter(Boolean).join(' ')}
              disabled={answer.isDisabled}
              onClick={() => answer.mutate({ option_id: option.id })}
            >
              {option.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function TextAnswer({ isBusy, onAnswer }: { isBusy: boolean; onAnswer: (text: string) => void }) {
  const [text, setText] = useState('');
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer(text);
      }}
    >
      <input
        className="question-text"
        aria-label="Answer"
        placeholder="Answer"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" className="primary" disabled={isBusy || text.trim() === ''}>
        Answer
      </button>
    </form>
  );
}

function labelOf({ options }: Question, answer: Answer): string {
  if ('text' in answer) return answer.text;
  return options.find(({ id }) => id === answer.option_id)?.label ?? answer.option_id;
}
