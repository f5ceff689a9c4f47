/** The OpenAI Responses API, as codex uses it. */
import { cutStream, nextId, openStream, piecesOf, sendEvent } from './sse.mjs';

export const openaiResponses = {
  name: 'openai-responses',
  matches: (method, path) => method === 'POST' && path.endsWith('/responses'),
  model: (_path, body) => body.model,
  hasTools: (body) => (body.tools ?? []).length > 0,

  messages(body) {
    return (body.input ?? []).flatMap((item) => {
      if (item.type === 'message' || item.role) return [{ role: item.role, text: textOf(item) }];
      // Calls are answers of the model too; their outputs are not.
      if (String(item.type).endsWith('_call')) return [{ role: 'assistant', text: '' }];
      return [];
    });
  },

  errorBody(status, resetSeconds) {
    if (resetSeconds !== undefined) {
      const resets_at = Math.floor(Date.now() / 1000) + resetSeconds;
      const limit = { plan_type: 'plus', resets_at, resets_in_seconds: resetSeconds };
      const message = 'The usage limit has been reached';
      return { error: { type: 'usage_limit_reached', message, ...limit } };
    }
    const codes = {
      400: 'invalid_request_error',
      401: 'invalid_api_key',
      429: 'rate_limit_exceeded',
    };
    const code = codes[status] ?? 'server_error';
    return { error: { type: code, code, message: `fake model error ${status}` } };
  },

  async answer(response, { action, model }) {
    const id = nextId('resp');
    const item = itemOf(action);
    let sequence = 0;
    const send = (data) => sendEvent(response, { ...data, sequence_number: sequence++ }, data.type);
    const base = { id, object: 'response', model, status: 'in_progress', output: [] };
    openStream(response);
    send({ type: 'response.created', response: base });
    send({
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress' },
    });
    if (action.kind === 'cut') return cutStream(response);
    if (item.type === 'message') {
      for (const delta of piecesOf(action.text)) {
        send({
          type: 'response.output_text.delta',
          item_id: item.id,
          output_index: 0,
          content_index: 0,
          delta,
        });
      }
    }
    send({ type: 'response.output_item.done', output_index: 0, item });
    const done = { ...base, status: 'completed', output: [item], usage: usageOf(action.usage) };
    send({ type: 'response.completed', response: done });
    response.end();
  },
};

/** Cached tokens are part of the input and reasoning tokens part of the output, as OpenAI counts. */
function usageOf(usage) {
  const input = usage.in + usage.read;
  const output = usage.out + usage.reason;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.read },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reason },
    total_tokens: input + output,
  };
}

function itemOf(action) {
  if (action.kind !== 'tool') {
    const content = [{ type: 'output_text', text: action.text ?? '', annotations: [] }];
    return { type: 'message', id: nextId('msg'), role: 'assistant', status: 'completed', content };
  }
  return {
    type: 'function_call',
    id: nextId('fc'),
    call_id: nextId('call'),
    ...toolName(action.name),
    arguments: JSON.stringify(action.input),
    status: 'completed',
  };
}

/** A tool of a namespace, such as an MCP server, is written `namespace/tool`. */
function toolName(text) {
  const [namespace, name] = text.split('/');
  return name === undefined ? { name: text } : { namespace, name };
}

function textOf(item) {
  if (typeof item.content === 'string') return item.content;
  return (item.content ?? []).map((part) => part.text ?? '').join('\n');
}
