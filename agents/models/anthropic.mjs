/** The Anthropic Messages API, as claude uses it. */
import { cutStream, nextId, openStream, piecesOf, sendEvent } from './sse.mjs';

export const anthropic = {
  name: 'anthropic',
  matches: (method, path) => method === 'POST' && path.startsWith('/v1/messages'),
  model: (_path, body) => body.model,
  hasTools: (body) => (body.tools ?? []).length > 0,
  messages: (body) =>
    (body.messages ?? []).map(({ role, content }) => ({ role, text: textOf(content) })),

  answerAside(path, body) {
    if (!path.endsWith('/count_tokens')) return undefined;
    return { input_tokens: Math.ceil(JSON.stringify(body).length / 4) };
  },

  errorBody(status) {
    const types = { 401: 'authentication_error', 429: 'rate_limit_error', 529: 'overloaded_error' };
    const type = types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
    return { type: 'error', error: { type, message: `fake model error ${status}` } };
  },

  async answer(response, { action, body, model }) {
    const message = {
      id: nextId('msg'),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...inputUsage(action.usage), output_tokens: 1 },
    };
    const block = blockOf(action);
    const stopReason = block.type === 'tool_use' ? 'tool_use' : 'end_turn';
    if (!body.stream) {
      if (action.kind === 'cut') return void response.destroy();
      message.content = [block];
      message.stop_reason = stopReason;
      message.usage.output_tokens = action.usage.out;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(message));
      return;
    }
    const send = (data) => sendEvent(response, data, data.type);
    openStream(response);
    send({ type: 'message_start', message });
    const start = block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} };
    send({ type: 'content_block_start', index: 0, content_block: start });
    if (action.kind === 'cut') return cutStream(response);
    for (const delta of deltasOf(block)) send({ type: 'content_block_delta', index: 0, delta });
    send({ type: 'content_block_stop', index: 0 });
    const usage = { ...inputUsage(action.usage), output_tokens: action.usage.out };
    send({ type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage });
    send({ type: 'message_stop' });
    response.end();
  },
};

function inputUsage(usage) {
  return {
    input_tokens: usage.in,
    cache_read_input_tokens: usage.read,
    cache_creation_input_tokens: usage.write,
  };
}

function blockOf(action) {
  if (action.kind !== 'tool') return { type: 'text', text: action.text ?? '' };
  return { type: 'tool_use', id: nextId('toolu'), name: action.name, input: action.input };
}

function deltasOf(block) {
  if (block.type === 'text') {
    return piecesOf(block.text).map((text) => ({ type: 'text_delta', text }));
  }
  return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return (content ?? []).map((block) => (block.type === 'text' ? block.text : '')).join('\n');
}
