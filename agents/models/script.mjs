/**
 * What the fake model does, written into the prompt itself as steps in double brackets:
 *
 *   [[say hello]]                        answer with text and end the turn
 *   [[tool shell {"command":"ls"}]]      call a tool; the next step runs after its result
 *   [[fail 429 retry-after=30 times=2]]  answer with an HTTP error, `times` times (default: always)
 *   [[fail 429 reset=3600]]              a usage limit that ends after that many seconds
 *   [[cut]]                              break the stream in the middle of an answer
 *   [[wait 2000]]                        stay silent that many milliseconds before the next step
 *   [[usage in=120 out=7 read=900 write=40 reason=3]]  token counts of every answer of this prompt
 *
 * Without steps the model says "ok". The steps stand in the prompt, so a request carries
 * everything that decides its answer and a server needs no memory of conversations.
 */
const stepPattern = /\[\[(say|tool|fail|cut|wait|usage)\b\s*([\s\S]*?)\]\]/g;

export const defaultUsage = { in: 100, out: 10, read: 0, write: 0, reason: 0 };

/**
 * @param {string} prompt the newest text of the user that has steps
 * @returns {{steps: {kind: string, rest: string}[], usage: typeof defaultUsage}}
 */
export function parseScript(prompt) {
  const usage = { ...defaultUsage };
  const steps = [];
  for (const [, kind, rest] of prompt.matchAll(stepPattern)) {
    if (kind === 'usage') Object.assign(usage, numbersOf(rest));
    else steps.push({ kind, rest: rest.trim() });
  }
  return { steps, usage };
}

/** True for text that tells the fake model what to do. */
export function hasScript(text) {
  return text.search(stepPattern) >= 0;
}

/**
 * The answer to one request. `calls` are the answers the model gave since the prompt, so the
 * step to run now is known from the request alone; only repeated failures need a counter.
 *
 * @param {{prompt: string, answers: number}} turn
 * @param {Map<string, number>} failures how often each failing step has failed, by prompt
 */
export function nextAction(turn, failures) {
  const { steps, usage } = parseScript(turn.prompt);
  let waitMs = 0;
  let position = 0;
  for (const [index, { kind, rest }] of steps.entries()) {
    if (kind === 'wait') {
      if (position === turn.answers) waitMs += Number(rest);
      continue;
    }
    if (kind === 'fail') {
      if (position !== turn.answers) continue;
      const [status, ...options] = rest.split(/\s+/);
      const { times = Infinity, reset, ...headers } = wordsOf(options);
      const key = `${index} ${turn.prompt}`;
      const count = failures.get(key) ?? 0;
      if (count >= Number(times)) continue;
      failures.set(key, count + 1);
      const resetSeconds = reset === undefined ? undefined : Number(reset);
      return { kind: 'fail', status: Number(status), resetSeconds, headers, waitMs, usage };
    }
    if (position++ < turn.answers) continue;
    if (kind === 'say') return { kind: 'say', text: rest, waitMs, usage };
    if (kind === 'cut') return { kind: 'cut', waitMs, usage };
    const [name, ...json] = rest.split(/\s+(.*)/s);
    return { kind: 'tool', name, input: JSON.parse(json[0] || '{}'), waitMs, usage };
  }
  return { kind: 'say', text: 'ok', waitMs, usage };
}

function wordsOf(options) {
  return Object.fromEntries(options.filter(Boolean).map((option) => option.split('=')));
}

function numbersOf(text) {
  const words = Object.entries(wordsOf(text.trim().split(/\s+/)));
  return Object.fromEntries(words.map(([name, value]) => [name, Number(value)]));
}
