import { expect, test } from 'vitest';
import { claudeAnswer, codexAnswer } from './last-answer.js';

const said = (id: string, text: string, more: object = {}) => ({
  type: 'assistant',
  message: { id, model: 'claude-opus-4-5', content: [{ type: 'text', text }] },
  ...more,
});

test('last answer: all texts of the last message of claude itself', () => {
  const tool = { type: 'assistant', message: { id: 'm2', content: [{ type: 'tool_use' }] } };
  const lines = [
    said('m1', 'First I look.'),
    said('m2', 'Done:'),
    said('m2', 'it works.'),
    tool,
    { type: 'user', message: { content: 'thanks' } },
    said('m3', 'from a subagent', { isSidechain: true }),
    said('m4', 'API Error: 500', { isApiErrorMessage: true }),
  ];
  expect(claudeAnswer(lines)).toBe('Done:\nit works.');
  expect(claudeAnswer([{ type: 'user' }])).toBeUndefined();
});

test('last answer: the last message of codex', () => {
  const event = (payload: object) => ({ type: 'event_msg', payload });
  const lines = [
    event({ type: 'agent_message', message: 'one' }),
    event({ type: 'agent_message', message: 'two' }),
    event({ type: 'token_count' }),
  ];
  expect(codexAnswer(lines)).toBe('two');
  expect(codexAnswer([{ type: 'session_meta' }])).toBeUndefined();
});
