import { expect, test } from 'vitest';
import { claudeAnswer, codexAnswer, geminiAnswer, qwenAnswer } from './last-answer.js';
import { screenAnswer } from './pane-markers.js';

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
  // Since 0.166 it writes no such event.
  const content = [{ type: 'output_text', text: 'three' }];
  const message = {
    type: 'response_item',
    payload: { type: 'message', role: 'assistant', content },
  };
  const end = event({ type: 'task_complete', last_agent_message: 'four' });
  expect(codexAnswer([message])).toBe('three');
  expect(codexAnswer([message, end, event({ type: 'token_count' })])).toBe('four');
});

test('last answer: the last text of gemini and of qwen, without thoughts and tools', () => {
  const gemini = (content: string) => ({ type: 'gemini', content, tokens: {} });
  expect(geminiAnswer([gemini('one'), { type: 'user', content: 'x' }, gemini('')])).toBe('one');
  expect(geminiAnswer([{ sessionId: 's1' }])).toBeUndefined();
  const qwen = (...parts: object[]) => ({ type: 'assistant', message: { role: 'model', parts } });
  const lines = [
    qwen({ text: 'hm', thought: true }, { text: 'First.' }),
    qwen({ text: 'Done.' }),
    qwen({ functionCall: { name: 'x' } }),
    { type: 'system', systemPayload: {} },
  ];
  expect(qwenAnswer(lines)).toBe('Done.');
  expect(qwenAnswer([{ type: 'user' }])).toBeUndefined();
});

test('last answer: without a transcript it is the screen between the last two prompts', () => {
  const bar = '─'.repeat(20);
  const gemini = [' GEMINI banner', ' > first', '✦ one', ' > second', '', '✦ two', '  lines', bar];
  const box = ['│ > Type your message', bar, ' no sandbox (see /docs)'];
  expect(screenAnswer('gemini', [...gemini, ...box])).toBe('✦ two\nlines');
  // The program has ended and cleared its prompt.
  expect(screenAnswer('gemini', gemini)).toBe('✦ two\nlines');
  expect(screenAnswer('gemini', [' GEMINI banner', ...box])).toBeUndefined();
  const side = ' '.repeat(40);
  const opencode = [
    '  ┃  say hello',
    `  ┃${side}Context`,
    '',
    '     hello there',
    '',
    '     ▣  Build · fake-1 · 6.8s',
    '  ┃',
    '  ┃  ',
    '  ┃  Build · fake-1 fake',
    `  ╹${'▀'.repeat(60)}`,
    `   /src/mill${side}ctrl+p commands`,
  ];
  expect(screenAnswer('opencode', opencode)).toBe('hello there');
  expect(screenAnswer({ ready: '^ready>' }, ['banner', 'ready> do it', 'did it', 'ready> '])).toBe(
    'did it',
  );
  expect(screenAnswer('unheard-of', ['banner', '> x', 'y'])).toBeUndefined();
});
