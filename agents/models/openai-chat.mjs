/** The OpenAI Chat Completions API, as qwen and opencode use it. */
import { cutStream, nextId, openStream, piecesOf, sendEvent } from './sse.mjs';

export const openaiChat = {
  name: 'openai-chat',
  matches: (method, path) => method === 'POST' && path.endsWith('/chat/completions'),
  model: (_path, body) => body.model,
  hasTools: (body) => (body.tools ?? []).length > 0,
  messages: (body) =>
    (body.messages ?? []).map(({ role, content }) => ({ role, text: textOf(content) })),

  errorBody(status, resetSeconds) {
    if (resetSeconds !== undefined) {
      const message = `You exceeded your current quota. Please try again in ${resetSeconds}s.`;
      return { error: { type: 'insufficient_quota', code: 'insufficient_quota', message } };
    }
    const codes = { 400: 'invalid_request_error', 429: 'rate_limit_exceeded' };
    const code = codes[status] ?? 'server_error';
    return { error: { type: code, code, message: `fake model error ${status}` } };
  },

  async answer(response, { action, body, model }) {
    const id = nextId('chatcmpl');
    const message = messageOf(action);
    const finish = message.tool_calls ? 'tool_calls' : 'stop';
    if (!body.stream) {
      if (action.kind === 'cut') return void response.destroy();
      const choices = [{ index: 0, message, finish_reason: finish }];
      const whole = { id, object: 'chat.completion', created: 1, model, choices };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...whole, usage: usageOf(action.usage) }));
      return;
    }
    const chunk = (choices, more) => ({
      id,
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices,
      ...more,
    });
    const send = (delta, finishReason = null) =>
      sendEvent(response, chunk([{ index: 0, delta, finish_reason: finishReason }]));
    openStream(response);
    send({ role: 'assistant', content: '' });
    if (action.kind === 'cut') return cutStream(response);
    if (message.tool_calls) {
      send({ tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) });
    } else for (const content of piecesOf(message.content)) send({ content });
    send({}, finish);
    sendEvent(response, chunk([], { usage: usageOf(action.usage) }));
    sendEvent(response, '[DONE]');
    response.end();
  },
};

function usageOf(usage) {
  const input = usage.in + usage.read;
  const output = usage.out + usage.reason;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: usage.read },
    completion_tokens_details: { reasoning_tokens: usage.reason },
  };
}

function messageOf(action) {
  if (action.kind !== 'tool') return { role: 'assistant', content: action.text ?? '' };
  const fn = { name: action.name, arguments: JSON.stringify(action.input) };
  const call = { id: nextId('call'), type: 'function', function: fn };
  return { role: 'assistant', content: null, tool_calls: [call] };
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}
