/**
 * One HTTP server on loopback that speaks the model APIs of the real command-line agents, and
 * keeps account of every token it reported.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { anthropic } from './anthropic.mjs';
import { gemini } from './gemini.mjs';
import { openaiChat } from './openai-chat.mjs';
import { openaiResponses } from './openai-responses.mjs';
import { hasScript, nextAction } from './script.mjs';

const apis = [anthropic, openaiResponses, openaiChat, gemini];

/**
 * @returns {Promise<{url: string, requests: object[], totals(options?: object): object, close(): Promise<void>}>}
 */
export async function startModelServer() {
  const requests = [];
  const failures = new Map();
  const server = createServer((request, response) => {
    serve(request, response, { requests, failures }).catch((error) => {
      requests.push({ path: request.url, problem: String(error?.stack ?? error) });
      response.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    totals: (options) => totalsOf(requests, options),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(request, response, { requests, failures }) {
  const body = await readJson(request);
  const path = request.url.split('?')[0];
  const api = apis.find((one) => one.matches(request.method, path));
  if (!api) {
    requests.push({ path, method: request.method, isUnknown: true });
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end('{"error":{"type":"not_found_error","message":"not found"}}');
    return;
  }
  const aside = api.answerAside?.(path, body);
  if (aside !== undefined) {
    requests.push({ path, model: body?.model, isAside: true });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(aside));
    return;
  }
  const turn = turnOf(api.messages(body));
  const action = nextAction(turn, failures);
  const record = {
    path,
    api: api.name,
    model: api.model(path, body),
    isScripted: turn.isScripted,
    hasTools: api.hasTools(body),
    action: action.kind,
    usage: action.kind === 'say' || action.kind === 'tool' ? action.usage : undefined,
    prompt: turn.prompt,
    answers: turn.answers,
    body,
  };
  requests.push(record);
  if (action.waitMs > 0) await sleep(action.waitMs);
  if (response.destroyed) {
    record.usage = undefined;
    return;
  }
  if (action.kind === 'fail') {
    const limit = action.resetSeconds && api.limitHeaders?.(action.resetSeconds);
    const headers = { 'content-type': 'application/json', ...limit, ...action.headers };
    response.writeHead(action.status, headers);
    response.end(JSON.stringify(api.errorBody(action.status, action.resetSeconds)));
    return;
  }
  await api.answer(response, { action, body, path, model: record.model });
}

/** The newest prompt with steps, and how often the model has answered since. */
function turnOf(messages) {
  let prompt;
  let answers = 0;
  for (const message of messages) {
    if (message.role === 'user' && hasScript(message.text)) {
      prompt = lastScript(message.text);
      answers = 0;
    } else if (message.role === 'assistant') answers += 1;
  }
  return { prompt: prompt ?? '', answers, isScripted: prompt !== undefined };
}

/** An agent may put several prompts into one message; the last line with steps counts. */
function lastScript(text) {
  const lines = text.split('\n').filter((line) => hasScript(line));
  return lines.at(-1) ?? text;
}

function totalsOf(requests, { onlyWithTools = false, model } = {}) {
  const totals = { calls: 0, in: 0, out: 0, read: 0, write: 0, reason: 0 };
  for (const request of requests) {
    if (!request.usage || !request.isScripted) continue;
    if (onlyWithTools && !request.hasTools) continue;
    if (model && request.model !== model) continue;
    totals.calls += 1;
    for (const name of Object.keys(request.usage)) totals[name] += request.usage[name];
  }
  return totals;
}

async function readJson(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  if (chunks.length === 0) return undefined;
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}
