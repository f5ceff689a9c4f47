/** The Gemini API, as gemini uses it. */
import { cutStream, nextId, openStream, piecesOf, sendEvent } from './sse.mjs';

const method = /^\/(?:v1|v1beta)\/models\/([^:]+):(\w+)$/;

export const gemini = {
  name: 'gemini',
  matches: (verb, path) => verb === 'POST' && method.test(path),
  model: (path) => method.exec(path)[1],
  hasTools: (body) => (body.tools ?? []).length > 0,

  messages(body) {
    return (body.contents ?? []).map(({ role, parts }) => ({
      role: role === 'model' ? 'assistant' : 'user',
      text: (parts ?? []).map((part) => part.text ?? '').join('\n'),
    }));
  },

  /** Counting, and the small requests that want JSON of a given schema. */
  answerAside(path, body) {
    if (path.endsWith(':countTokens')) return { totalTokens: 100 };
    const config = body.generationConfig ?? {};
    if (config.responseMimeType !== 'application/json') return undefined;
    const schema = config.responseJsonSchema ?? config.responseSchema ?? {};
    const text = JSON.stringify(exampleOf(schema));
    return wholeAnswer([{ text }], { in: 10, out: 5, read: 0, reason: 0 });
  },

  errorBody(status, resetSeconds) {
    if (resetSeconds !== undefined) {
      const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo' };
      const quota = { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' };
      const quotaId = 'GenerateRequestsPerDayPerProjectPerModel';
      const message = `You exceeded your current quota. Please retry in ${resetSeconds}s.`;
      const details = [
        { ...quota, violations: [{ quotaId }] },
        { ...retry, retryDelay: `${resetSeconds}s` },
      ];
      return { error: { code: status, status: 'RESOURCE_EXHAUSTED', message, details } };
    }
    const names = { 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE', 400: 'INVALID_ARGUMENT' };
    const name = names[status] ?? 'INTERNAL';
    return { error: { code: status, status: name, message: `fake model error ${status}` } };
  },

  async answer(response, { action, path }) {
    const isStream = path.endsWith(':streamGenerateContent');
    const parts = partsOf(action);
    if (!isStream) {
      if (action.kind === 'cut') return void response.destroy();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(wholeAnswer(parts, action.usage)));
      return;
    }
    openStream(response);
    if (action.kind === 'cut') {
      sendEvent(response, { candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] } }] });
      return cutStream(response);
    }
    for (const part of parts.slice(0, -1)) {
      sendEvent(response, {
        candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }],
      });
    }
    sendEvent(response, wholeAnswer(parts.slice(-1), action.usage));
    response.end();
  },
};

function wholeAnswer(parts, usage) {
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.in + usage.read,
      cachedContentTokenCount: usage.read,
      candidatesTokenCount: usage.out,
      thoughtsTokenCount: usage.reason,
      totalTokenCount: usage.in + usage.read + usage.out + usage.reason,
    },
  };
}

function partsOf(action) {
  if (action.kind === 'tool') {
    return [{ functionCall: { id: nextId('call'), name: action.name, args: action.input } }];
  }
  return piecesOf(action.text ?? '').map((text) => ({ text }));
}

/** The smallest value that fits a JSON schema. */
function exampleOf(schema) {
  if (schema.enum) return schema.enum[0];
  const type = String(Array.isArray(schema.type) ? schema.type[0] : schema.type).toLowerCase();
  if (type === 'object') {
    const entries = Object.entries(schema.properties ?? {});
    return Object.fromEntries(entries.map(([name, inner]) => [name, exampleOf(inner)]));
  }
  if (type === 'array') return [];
  if (type === 'boolean') return false;
  if (type === 'number' || type === 'integer') return 1;
  return 'ok';
}
